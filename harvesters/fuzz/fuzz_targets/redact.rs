#![no_main]

use skillopt_harvesters_fuzz::redact;

libfuzzer_sys::fuzz_target!(|data: &[u8]| redact(data));
