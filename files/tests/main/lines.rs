use std::fs;
use std::os::unix::fs::MetadataExt;

use skillopt_files::append_line;
use tempfile::tempdir;

#[test]
fn lines_follow_each_other_in_a_private_file() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    append_line(&path, "{\"a\":1}", false).unwrap();
    append_line(&path, "{\"a\":2}", true).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"a\":2}\n");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_torn_line_does_not_spoil_the_next() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    fs::write(&path, "{\"a\":").unwrap();
    append_line(&path, "{\"a\":2}", false).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":\n{\"a\":2}\n");
}

#[test]
fn a_newline_inside_cannot_make_two_records() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("log.jsonl");
    append_line(&path, "a\nb", false).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "ab\n");
}
