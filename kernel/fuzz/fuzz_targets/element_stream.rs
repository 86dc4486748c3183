//! See `entries::element_stream`.
#![no_main]

#[path = "../../core/tests/fuzz/entries.rs"]
#[allow(dead_code)]
mod entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entries::element_stream(data));
