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
fn programs_of_every_ecosystem_are_known_with_what_they_verify() {
    use VerificationKind::{Build, Check, Lint, Test, Types};
    for (kind, commands) in [
        (
            Test,
            &[
                "python -W error -m unittest discover -s tests",
                "PYTHONPATH=. python tests/test_money.py",
                "python tests/run.py",
                "python -m coverage run -m pytest",
                "hatch run test:unit",
                "pipenv run test",
                "django-admin test",
                "uv run -m pytest",
                "conda run -n env pytest",
                "cargo --locked test",
                "cargo --manifest-path x/Cargo.toml test",
                "cargo llvm-cov nextest",
                "cargo miri test",
                "go test ./... -race",
                "go run gotest.tools/gotestsum@latest",
                "npm t",
                "npm -w web test",
                "yarn jest src/a.test.ts",
                "pnpm exec playwright test",
                "npx vitest@latest run",
                "npx c8 node --test",
                "nyc npm test",
                "node ./node_modules/.bin/vitest run",
                "node node_modules/jest/bin/jest.js",
                "node test/run.js",
                "tsx test/run.ts",
                "xvfb-run -a npx cypress run",
                "./gradlew clean test",
                "gradle :app:testDebugUnitTest",
                "./gradlew integrationTest",
                "mvn clean verify",
                "./mvnw -B -pl core test",
                "mvn test -Dtest=MoneyTest",
                "dotnet test --no-build",
                "bin/rspec",
                "rails test:system",
                "ruby -Itest test/money_test.rb",
                "bundle exec rake test",
                "php vendor/bin/phpunit --filter x",
                "php artisan test",
                "symfony php bin/phpunit",
                "composer exec phpunit",
                "ninja -C build test",
                "zig build test",
                "xcodebuild test -scheme App",
                "sbt 'testOnly *Money*'",
                "earthly +test",
                "lerna run test",
                "pants test ::",
                "time -p pytest",
                "env -i PATH=$PATH pytest",
                "sudo -u dev pytest",
                "nice -n 10 make test",
                "timeout -k 5 60 pytest",
                "docker run --rm -v $PWD:/w -w /w image pytest",
                "docker compose exec -T web pytest",
                "ssh host 'cd x && pytest'",
                "nix-shell --run 'make test'",
                "script -qc pytest /dev/null",
                "cmd /c npm test",
                "RESULT=$(pytest -q)",
                "find . -name '*_test.py' | xargs -n 5 pytest",
            ][..],
        ),
        (
            Lint,
            &[
                "python3 -m ruff check .",
                "isort -c .",
                "cargo fmt --all -- --check",
                "cargo deny check",
                "npx @biomejs/biome check .",
                "./gradlew ktlintCheck",
                "mvn checkstyle:check",
                "dotnet format --verify-no-changes",
                "vendor/bin/php-cs-fixer fix --dry-run",
                "vendor/bin/pint --test",
                "terraform fmt -check",
                "find . -name '*.sh' -exec shellcheck {} +",
            ],
        ),
        (
            Types,
            &[
                "yarn tsc --noEmit",
                "node_modules/.bin/tsc -p .",
                "npx astro check",
                "dmypy run -- src",
                "cargo hack check",
            ],
        ),
        (
            Build,
            &[
                "python -m build",
                "cargo test --no-run",
                "./gradlew build -x test",
                "./gradlew compileTestJava",
                "./gradlew assembleDebug",
                "mvn -q -DskipTests verify",
                "mvn clean install",
                "make -C src all",
                "ruby -c a.rb",
                "bash -n x.sh",
            ],
        ),
        (
            Check,
            &[
                "python manage.py check",
                "nix flake check",
                "R CMD check .",
                "rake",
            ],
        ),
    ] {
        for command in commands {
            let found = judged(command, Ended::Code(0), "");
            assert_eq!(found.map(|found| found.kind), Some(kind), "{command}");
        }
    }
}

#[test]
fn what_verifies_nothing_is_no_verification() {
    for command in [
        "make -n test",
        "go test -list . ./...",
        "php -r 'echo 1;'",
        "node -e 'test()'",
        "node build/server.js",
        "python tests/make_data.py",
        "mvn dependency:tree",
        "./gradlew bootRun",
        "docker run -v /test:/test image ls",
        "env | grep TEST",
        "X=$(ls tests)",
        "go run ./cmd/serve",
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

#[test]
fn a_code_that_was_printed_counts_as_the_commands_own() {
    for (command, output, expected) in [
        (
            "./check.sh; echo \"exit: $?\"",
            "all is well\nexit: 3",
            Some(false),
        ),
        ("./check.sh; echo $?", "12 lines\n0", Some(true)),
        (
            "npm test 2>&1 | tail -3; echo \"code ${PIPESTATUS[0]} (npm)\"",
            "ok\ncode 1 (npm)",
            Some(false),
        ),
        // This is the code of `tail`.
        ("./check.sh | tail -3; echo $?", "all is well\n0", None),
        ("./check.sh; echo done", "done", None),
    ] {
        assert_eq!(passed(command, 0, output), Some(expected), "{command}");
    }
    assert_eq!(
        passed("mypy src; echo $?", 0, "mypy: command not found\n127"),
        None
    );
}

#[test]
fn the_last_words_of_every_tool_are_understood() {
    for (expected, outputs) in [
        (
            Some(false),
            &[
                "Tests:       1 failed, 5 passed, 6 total",
                " Tests  2 failed | 5 passed (7)",
                "  1 failing",
                "ℹ pass 4\nℹ fail 1",
                "✖ failing tests:",
                " 4 pass\n 1 fail",
                "--- FAIL: TestX (0.00s)\nFAIL\tx/money\t0.1s",
                "panic: runtime error: index out of range",
                "test result: FAILED. 1 passed; 1 failed; 0 ignored",
                "Failed!  - Failed:     1, Passed:     5, Skipped:     0, Total:     6",
                "[ERROR] Tests run: 5, Failures: 1, Errors: 0, Skipped: 0",
                "> Task :test FAILED",
                "5 tests completed, 1 failed",
                "5 examples, 1 failure",
                "5 runs, 10 assertions, 1 failures, 0 errors, 0 skips",
                "Tests: 5, Assertions: 10, Failures: 1.",
                "✖ 3 problems (2 errors, 1 warning)",
                "src/a.ts(3,5): error TS2322: no",
                "Found 2 errors in 1 file (checked 3 source files)",
                "a.py:1:1: E302 expected 2 blank lines",
                "would reformat a.py",
                "[warn] Code style issues found in the above file.",
                "67% tests passed, 1 tests failed out of 3",
                "[error] Failed: Total 5, Failed 1, Errors 0, Passed 4",
                "Some tests failed.",
                "5 files inspected, 2 offenses detected",
                "make: *** [Makefile:3: test] Error 1",
                "error Command failed with exit code 1.",
                " ELIFECYCLE  Test failed. See above for more details.",
                "Executed 5 of 5 (1 FAILED) (0.1 secs)",
            ][..],
        ),
        (
            Some(true),
            &[
                "Tests:       6 passed, 6 total",
                "  5 passing (10ms)",
                "ℹ pass 5\nℹ fail 0",
                " 5 pass\n 0 fail",
                "ok  \tx/money\t0.1s",
                "5 passed, 2 xfailed, 1 warning in 0.10s",
                "OK (skipped=1)",
                "Passed!  - Failed:     0, Passed:     6, Skipped:     0, Total:     6",
                "Build succeeded.\n    0 Warning(s)\n    0 Error(s)",
                "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
                "BUILD SUCCESSFUL in 3s",
                "5 examples, 0 failures",
                "OK (5 tests, 10 assertions)",
                "✖ 1 problem (0 errors, 1 warning)",
                "Success: no issues found in 3 source files",
                "All checks passed!",
                "All matched files use Prettier code style!",
                "5 files would be left unchanged.",
                "100% tests passed, 0 tests failed out of 3",
                "[success] Total time: 3 s",
                "5 files inspected, no offenses detected",
                "Executed 5 of 5 SUCCESS (0.1 secs)",
                "0 issues.",
            ],
        ),
        (
            None,
            &["no tests ran in 0.01s", "?   \tx/money\t[no test files]"],
        ),
    ] {
        for output in outputs {
            let found = passed("./check.sh | tail -5", 0, output);
            assert_eq!(found, Some(expected), "{output}");
        }
    }
}
