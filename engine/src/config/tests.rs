use super::*;

fn resolve(
    flags: &[(&'static str, &str)],
    env: &[(&str, &str)],
    file: &str,
) -> Result<Config, ConfigError> {
    Config::resolve(Sources {
        flags: flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect(),
        environment: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        file: Some(("c.toml".into(), file.to_owned())),
        home: Home::from_environment(|name| (name == "HOME").then(|| "/home/ada".into())),
        ..Sources::default()
    })
}

#[test]
fn the_strongest_layer_wins() {
    let file = "window = 2048\nthreads = 3\ntop_k = 7";
    let env = [("GARRET_WINDOW", "3000"), ("GARRET_THREADS", "5")];
    let config = resolve(&[("window", "4000")], &env, file).unwrap();
    assert_eq!(config.window, Setting { value: Some(4_000), origin: Origin::Flag });
    let threads = Origin::Environment("GARRET_THREADS".into());
    assert_eq!(config.threads, Setting { value: 5, origin: threads });
    assert_eq!(config.top_k, Setting { value: 7, origin: Origin::File("c.toml".into()) });
    assert!(matches!(config.batch.origin, Origin::Device(_)));
    assert_eq!(config.temperature.origin, Origin::Default);
}

/// A value that each key accepts and that is no default.
const OTHER: [(&str, &str); 33] = [
    ("model", "m.gguf"),
    ("compactor_model", "c.gguf"),
    ("inferrer_model", "i.gguf"),
    ("embedder", "e.gguf"),
    ("reranker", "r.gguf"),
    ("models_dir", "somewhere"),
    ("data", "elsewhere"),
    ("namespace", "ada"),
    ("window", "3333"),
    ("max_tokens", "33"),
    ("memory_tokens", "34"),
    ("compact_at", "70"),
    ("show_time", "false"),
    ("companions", "turbo"),
    ("companion_schema", "extended"),
    ("tools", "on"),
    ("tool_protocol", "native"),
    ("system_prompt", "Be a pirate."),
    ("temperature", "0.25"),
    ("top_k", "33"),
    ("top_p", "0.25"),
    ("min_p", "0.75"),
    ("repeat_penalty", "1.25"),
    ("repeat_last_n", "33"),
    ("seed", "33"),
    ("threads", "33"),
    ("batch_threads", "34"),
    ("batch", "48"),
    ("kv_type", "q8_0"),
    ("snapshot", "off"),
    ("snapshot_mib", "33"),
    ("gpu_layers", "33"),
    ("log", "debug"),
];

#[test]
fn every_key_arrives_from_every_layer_and_is_shown() {
    assert_eq!(
        OTHER.map(|(key, _)| key).as_slice(),
        KEYS.iter().map(|k| k.name).collect::<Vec<_>>()
    );
    for (key, value) in OTHER {
        let variable = format!("GARRET_{}", key.to_uppercase());
        let line = format!("{key} = {value:?}");
        for config in [
            resolve(&[(key, value)], &[], ""),
            resolve(&[], &[(&variable, value)], ""),
            resolve(&[], &[], &line),
        ] {
            let config = config.unwrap();
            let entries = config.entries();
            let (_, shown, origin) = entries.iter().find(|(name, ..)| *name == key).unwrap();
            assert_eq!(shown, value, "{key}");
            assert_ne!(**origin, Origin::Default, "{key}");
            let set = entries
                .iter()
                .filter(|(.., origin)| !matches!(origin, Origin::Default | Origin::Device(_)));
            assert_eq!(set.count(), 1, "only {key} was set");
        }
    }
}

#[test]
fn unknown_keys_are_errors_that_suggest() {
    let error = resolve(&[], &[], "temprature = 1").unwrap_err();
    assert_eq!(
        error.to_string(),
        "file c.toml: unknown key `temprature`; did you mean `temperature`?"
    );
    let error = resolve(&[], &[("GARRET_MODLE", "x")], "").unwrap_err().to_string();
    assert!(error.contains("did you mean `GARRET_MODEL`?"), "{error}");
    for near in ["GARRET_GARRET_SEED", "GARRET_seed"] {
        assert!(resolve(&[], &[(near, "1")], "").is_err(), "{near}");
    }
    let error = resolve(&[], &[], "[window]\ntokens = 3").unwrap_err().to_string();
    assert!(error.contains("`window`"), "{error}");
    let error = resolve(&[], &[], "zzz = 1").unwrap_err().to_string();
    assert!(error.contains("config show"), "{error}");
}

#[test]
fn variables_of_the_scripts_are_not_keys() {
    let env = [("GARRET_TEST_MODELS", "x"), ("GARRET_CONFIG", "y"), ("GARRET_FEATURES", "z")];
    assert!(resolve(&[], &env, "").is_ok());
}

#[test]
fn values_that_do_not_fit_say_what_would() {
    for (key, value, word) in [
        ("window", "2047", "2048"),
        ("window", "-1", "2048"),
        ("max_tokens", "0", "at least 1"),
        ("temperature", "5.1", "0 to 5"),
        ("temperature", "NaN", "0 to 5"),
        ("top_p", "1.5", "0 to 1"),
        ("repeat_penalty", "0.5", "1 to 2"),
        ("threads", "0", "1 to 512"),
        ("batch", "1", "16 to 4096"),
        ("kv_type", "q4_0", "q8_0"),
        ("companions", "on", "cold_start"),
        ("companion_schema", "large", "extended"),
        ("seed", "4294967296", "4294967295"),
        ("repeat_last_n", "65537", "65536"),
        ("model", "", "path"),
    ] {
        let error = resolve(&[(key, value)], &[], "").unwrap_err().to_string();
        assert!(error.contains(key) && error.contains(word), "{key} {value}: {error}");
    }
}

#[test]
fn a_file_that_is_not_toml_is_named_with_the_place() {
    let error = resolve(&[], &[], "window = \n").unwrap_err().to_string();
    assert!(error.starts_with("c.toml: not valid TOML") && error.contains("line 1"), "{error}");
}

#[test]
fn folders_follow_the_environment() {
    let home = Home::from_environment(|name| match name {
        "HOME" => Some("/home/ada".into()),
        "XDG_CACHE_HOME" => Some("/cache".into()),
        "XDG_DATA_HOME" => Some("relative".into()),
        _ => None,
    });
    assert_eq!(home.cache, Some("/cache".into()));
    assert_eq!(home.share, Some("/home/ada/.local/share".into()), "relative paths don't count");
}

#[test]
fn without_a_home_the_folders_must_be_configured() {
    let sources = |flags: &[(&'static str, &str)]| Sources {
        flags: flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect(),
        ..Sources::default()
    };
    let error = Config::resolve(sources(&[("models_dir", "m")])).unwrap_err();
    assert_eq!(error, ConfigError::NoHome { key: "data" });
    assert!(Config::resolve(sources(&[("models_dir", "m"), ("data", "d")])).is_ok());
}

#[test]
fn auto_gives_a_setting_back() {
    let config = resolve(&[("seed", "auto"), ("window", "auto")], &[], "seed = 3\nwindow = 4000");
    let config = config.unwrap();
    assert_eq!(config.seed, Setting { value: None, origin: Origin::Flag });
    assert!(matches!(config.window.origin, Origin::Device(_)));
}
