//! Alone in its process, since the heap is everybody's.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
// Clippy allows these in test functions, but not in what they call.
#![allow(clippy::unwrap_used)]

/// Bytes of this process that no file holds.
fn anonymous() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// Without the bound a block of 8 MiB, once freed, has blocks up to that size stay in the heap, where
/// small ones behind them keep their pages.
#[test]
fn pages_of_freed_blocks_are_given_back() {
    garret_hal::heap::bound();
    drop(vec![1_u8; 8 << 20]);
    let mut small = Vec::new();
    let mut blocks = Vec::new();
    for _ in 0..64 {
        blocks.push(vec![1_u8; 256 << 10]);
        small.push(Box::new([1_u8; 64]));
    }
    let held = anonymous();
    drop(blocks);
    let left = anonymous();
    assert!(left + (12 << 20) < held, "{held} bytes, then {left}");
    assert_eq!(small.len(), 64);
}
