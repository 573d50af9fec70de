//! Board: the name in the device tree, which Raspberry Pi, Jetson and most ARM boards have.

use super::Machine;

/// Tells which board this is.
pub trait BoardSensor: Send + Sync {
    /// The maker's name, such as `Raspberry Pi 5 Model B Rev 1.0`; `None` on most PCs.
    fn board(&self) -> Option<String>;
}

impl BoardSensor for Machine {
    fn board(&self) -> Option<String> {
        parse_model(&self.tree.read("/proc/device-tree/model")?)
    }
}

/// The text before the first NUL, on one line: it ends up in terminals and logs.
fn parse_model(text: &str) -> Option<String> {
    let text = text.split('\0').next()?;
    let words: Vec<_> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let name = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fixture::tree;
    use proptest::prelude::*;

    #[test]
    fn the_device_tree_names_the_board() {
        let dir = tree(&[("/proc/device-tree/model", "Raspberry Pi 5 Model B Rev 1.0\0")]);
        let machine = Machine::with_root(dir.path().to_path_buf());
        assert_eq!(machine.board().as_deref(), Some("Raspberry Pi 5 Model B Rev 1.0"));
    }

    #[test]
    fn a_pc_has_no_name() {
        let dir = tree(&[]);
        assert_eq!(Machine::with_root(dir.path().to_path_buf()).board(), None);
        assert_eq!(parse_model("\0rest"), None);
        assert_eq!(parse_model(" \n"), None);
    }

    proptest! {
        #[test]
        fn a_name_is_safe_to_print(text in "\\PC{0,10}[\u{0}-\u{20}\u{7f}]{0,3}\\PC{0,10}") {
            if let Some(name) = parse_model(&text) {
                prop_assert!(!name.chars().any(char::is_control));
                prop_assert_eq!(parse_model(&name), Some(name.clone()));
            }
        }
    }
}
