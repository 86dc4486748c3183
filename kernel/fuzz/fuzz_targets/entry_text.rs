//! See `entries::entry_text`.
#![no_main]

#[path = "../../core/tests/fuzz/entries.rs"]
#[allow(dead_code)]
mod entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    entries::entry_text(data);
});
