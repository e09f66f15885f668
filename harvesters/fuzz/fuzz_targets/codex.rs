#![no_main]

use skillopt_harvesters::Agent;
use skillopt_harvesters_fuzz::read;

libfuzzer_sys::fuzz_target!(|data: &[u8]| read(Agent::Codex, data));
