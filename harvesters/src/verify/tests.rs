use super::*;
use crate::shell::steps;

fn judged(command: &str, ended: Ended, output: &str) -> Option<Verification> {
    judge(command, &steps(command), ended, output, &Redactor::new())
}

fn passed(command: &str, code: i32, output: &str) -> Option<Option<bool>> {
    judged(command, Ended::Code(code), output).map(|found| found.passed)
}

#[test]
fn verifications_are_found_anywhere_in_a_chain() {
    for command in [
        "pytest",
        "cd x && python3 -m pytest tests/test_money.py -k parse",
        "npm --prefix packages/cart test",
        "for i in $(seq 5); do python3 -m pytest tests/a.py || exit 1; done",
        "time cargo test",
        "cargo +nightly test --all",
        "uv run --with x pytest -q",
        "poetry run mypy src",
        "docker exec -it web pytest",
        "docker compose run --rm web npm test",
        "make -C sub test",
        "just check",
        "./check.sh && CONFIRM=yes ./deploy.sh production",
        "npm run -s lint",
        "yarn workspace cart test",
        "npx -y tsc --noEmit",
        "bash -lc 'cd a && go test ./...'",
        "timeout 60 ./gradlew :app:test",
        "bundle exec rspec",
        "node --test test/price.test.js > /dev/null",
        "CI=1 pnpm -r test",
        "python manage.py test",
        "RUST_BACKTRACE=1 cargo nextest run",
        "set -o pipefail; pytest | tee log",
    ] {
        assert_eq!(passed(command, 0, ""), Some(Some(true)), "{command}");
    }
}

#[test]
fn what_verifies_nothing_is_no_verification() {
    for command in [
        "pytest --collect-only -q | tail -1",
        "npm test -- --listTests",
        "cargo --help",
        "ls tests",
        "grep -rn pytest .",
        "echo 'run npm test'",
        "npm install jest",
        "cat check.sh",
        "git commit -m 'make test pass'",
        "npm run dev",
        "pip install pytest",
        "cat > run.sh <<'EOF'\npytest\nEOF",
        "git checkout -- test",
    ] {
        assert_eq!(passed(command, 0, ""), None, "{command}");
    }
}

#[test]
fn the_exit_code_counts_only_when_it_is_the_commands_own() {
    for (command, code, output, expected) in [
        (
            "pytest | tail -3",
            0,
            "4 failed, 6 passed in 0.1s",
            Some(false),
        ),
        ("pytest | tail -3", 0, "6 passed in 0.1s", Some(true)),
        ("pytest 2>&1 | tail -3", 0, "nothing to see", None),
        ("pytest || true", 0, "1 failed", Some(false)),
        ("npm test; echo done", 0, "# fail 0\ndone", Some(true)),
        (
            "npm test 2>&1 | tail -40; exit ${PIPESTATUS[0]}",
            1,
            "",
            Some(false),
        ),
        (
            "npm test 2>&1 | tail -40; exit ${PIPESTATUS[0]}",
            2,
            "sh: 1: Bad substitution\n# fail 0",
            Some(true),
        ),
        (
            "pytest && ./deploy.sh",
            1,
            "6 passed\ndeploy: no",
            Some(true),
        ),
        (
            "pytest && ./deploy.sh",
            1,
            "1 failed, 5 passed",
            Some(false),
        ),
        ("cd x && pytest", 1, "", Some(false)),
        ("set -e\npytest\necho ok", 0, "", Some(true)),
        (
            "for f in a b; do pytest $f; done",
            0,
            "1 failed\n2 passed",
            Some(false),
        ),
    ] {
        assert_eq!(passed(command, code, output), Some(expected), "{command}");
    }
    assert_eq!(passed("yarn test", 127, "yarn: not found"), None);
    assert_eq!(passed("pytest &", 0, ""), Some(None));
    assert_eq!(
        judged("pytest", Ended::No, "").and_then(|found| found.passed),
        None
    );
}

#[test]
fn failing_lines_are_kept() {
    let found = judged(
        "pytest",
        Ended::Code(1),
        "collected 3\nFAILED tests/a.py::test_x - assert 1 == 2\n1 failed, 2 passed",
    )
    .unwrap();
    assert_eq!(
        found.failing,
        [
            "FAILED tests/a.py::test_x - assert 1 == 2",
            "1 failed, 2 passed"
        ]
    );
}
