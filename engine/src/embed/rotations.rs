//! Rotations that come with the program, learned beforehand; a store learns that of any other
//! embedder by itself once it is large enough.
//!
//! `cargo run --release -p garret-bench -- rotation --embedder GGUF --texts FILE --out FILE` made
//! them, from 6,512 different turns of human chats (MIT). Of the ten nearest among 1,628 others of the
//! same chats, a search that looks closely at 50 finds .995, and .914 with the first dimensions as
//! they are.

use garret_storage::vectors::Rotation;

/// The rotation of the embedder with this fingerprint, if one comes with the program.
pub(super) fn known(fingerprint: &[u8; 32]) -> Option<Rotation> {
    (*fingerprint == MINILM).then(|| Rotation::from_bytes(MINILM_ROTATION)).flatten()
}

/// SHA-256 of all-MiniLM-L6-v2 as `examples/models.py` makes it.
const MINILM: [u8; 32] = [
    0xdb, 0xd6, 0x40, 0x59, 0x9d, 0xac, 0xa7, 0xb5, 0x15, 0xff, 0x0c, 0xf1, 0x99, 0x52, 0xb7, 0xf5,
    0xf2, 0xaa, 0x31, 0x19, 0x6c, 0x39, 0xac, 0x20, 0x72, 0x2c, 0xfc, 0x86, 0xf1, 0x3c, 0x4c, 0x6b,
];
const MINILM_ROTATION: &[u8] = include_bytes!("data/all-MiniLM-L6-v2.rotation");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starter_embedder_has_a_rotation_of_its_length() {
        let rotation = known(&MINILM).unwrap();
        assert_eq!((rotation.dims(), rotation.coarse_dims()), (384, 128));
        assert!(rotation.is_learned());
        assert_eq!(known(&[0; 32]), None);
    }
}
