//! Shapes that any secret may have: headers, addresses, flags, files.

use super::{Rule, row};
use crate::redact::{hit, plausible};

/// Shapes that any secret may have: headers, addresses, flags, files.
pub(super) const SHAPES: &[Rule] = &[
    row(
        "otpauth",
        &["otpauth://"],
        r#"otpauth(?:-migration)?://[^\s\"'<>]+"#,
        "otpauth://totp/x?secret=FAKEFAKE",
        "otpauth",
    ),
    row(
        "jwt",
        &["eyj"],
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{8,})?",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJmYWtlIn0.FAKEFAKEFAKEFAKEFAKEFAKE",
        "eyJ.x.y",
    ),
    Rule {
        near: hit::with_user,
        ..row(
            "url-password",
            &["://"],
            r#"\b[A-Za-z][A-Za-z0-9+.-]+://[^\s:/@"'`<>\\]*:(?P<v>[^\s@"'`<>\\]+?)@[A-Za-z0-9.\[$_-]"#,
            "postgres://app:hunter2-fake@db.internal/shop",
            "https://example.com:8080/path",
        )
    },
    Rule {
        near: hit::with_user,
        ..row(
            "url-token",
            &["://"],
            r"(?i)\bhttps?://(?P<v>[A-Za-z0-9_-]{20,})@[a-z0-9.-]+",
            "https://FAKEFAKEFAKEFAKEFAKE0001@git.example.com/x.git",
            "https://git@example.com/x.git",
        )
    },
    Rule {
        near: hit::in_query,
        ..row(
            "url-query-secret",
            &[
                "token=",
                "key=",
                "secret=",
                "signature=",
                "code=",
                "password=",
                "pwd=",
            ],
            r"(?i)[?&](?:access_token|auth_token|token|api_?key|key|secret|signature|x-amz-signature|x-amz-security-token|x-goog-signature|code|client_secret|password|pwd)=(?P<v>[A-Za-z0-9%._~+/-]{12,}={0,2})",
            "https://api.example.com/v1?user=1&api_key=fake00000000fake",
            "https://example.com/?key=short",
        )
    },
    Rule {
        check: plausible::schemed,
        ..row(
            "auth-header",
            &["authorization"],
            r#"(?i)\bauthorization\\*["']?\s*(?:[:=]|=>|,)\s*\\*["']?(?:bearer|basic|token|digest|apikey|bot|negotiate)\s+(?P<v>"[^"\r\n]+"?|'[^'\r\n]+'?|[^\s"',;\\\[\]{}()<>]{3,})"#,
            "Authorization: Basic ZmFrZTpmYWtlLXBhc3M=",
            "Authorization: Bearer",
        )
    },
    Rule {
        check: plausible::credential,
        ..row(
            "auth-header",
            &["authorization"],
            r#"(?i)\bauthorization\\*["']?\s*(?:[:=]|=>|,)\s*\\*["']?(?:(?:bearer|basic|token|digest|apikey|bot|negotiate)\s+)?(?P<v>[^\s"',;\\\[\]{}()<>]{6,})"#,
            "Authorization: fake-0001-fake",
            "authorization: see below",
        )
    },
    Rule {
        check: plausible::credential,
        ..row(
            "bearer-token",
            &["bearer"],
            r"(?i)\bbearer\s+(?P<v>[A-Za-z0-9._~+/-]{14,}={0,2})",
            "Bearer FAKE-fake-FAKE-fake-0001",
            "bearer authentication scheme",
        )
    },
    row(
        "cookie",
        &["cookie"],
        r#"(?i)\b(?:set-)?cookie\\*["']?\s*:\s*\\*["']?(?P<v>[^\r\n"'\\=\s]+=[^\r\n"'\\]{6,})"#,
        "Cookie: session=FAKEFAKE0001; theme=dark",
        "cookie: yes",
    ),
    Rule {
        near: hit::headed,
        check: plausible::credential,
        ..row(
            "api-key-header",
            &["x-", "api-key", "apikey", "private-token", "job-token"],
            r#"(?i)\b(?:x-[a-z0-9-]*(?:key|token|secret|signature)|(?:ocp-)?api-?key|private-token|job-token)\\*["']?\s*:\s*\\*["']?(?P<v>[^\s"',;\\\[\]{}()<>]{8,})"#,
            "x-api-key: fake-0000-fake-0000",
            "x-api-key: short",
        )
    },
    row(
        "netrc",
        &["login"],
        r"(?i)\blogin\s+\S+\s+password\s+(?P<v>\S+)",
        "machine h.example.com login dev password fake-pass-1",
        "login page",
    ),
    row(
        "pgpass",
        &[":5432:", ":*:"],
        // A line of the file, or one quoted in a text.
        r#"(?m)(?:^[^\s:#]+:(?:\d{2,5}|\*)|[\s"'`(/][^\s:#"'`(/]+:(?:5432|\*)):[^\s:]+:[^\s:]+:(?P<v>[^\s"'`]{3,})"#,
        "db.example.com:5432:shop:app:fake-pass-1",
        "localhost:5432:",
    ),
    row(
        "htpasswd",
        &[":$"],
        r"\b[A-Za-z0-9._-]+:(?P<v>\$(?:apr1|2[aby]|5|6|y|argon2id)\$[A-Za-z0-9./$=,+-]{20,})",
        "dev:$2y$10$FAKEFAKEFAKEFAKEFAKEFAKEFAKE",
        "dev:$HOME/bin",
    ),
    Rule {
        near: hit::with_option,
        ..row(
            "command-password",
            &[
                "mysql",
                "mariadb",
                "sshpass",
                "docker login",
                "redis-cli",
                "mongo",
                "psql",
                "ldapsearch",
                "7z",
                "zip",
            ],
            r#"\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass|docker login|redis-cli|mongosh?|psql|ldapsearch|7z|unzip|zip)\b[^\n|;&]*?\s(?:-p|-a |-w |-P )\s?["']?(?P<v>[^\s"'|;&-][^\s"'|;&]{2,})"#,
            "mysql -u root -pfake-pass-1 shop",
            "mysql -u root -p",
        )
    },
    Rule {
        near: hit::with_option,
        ..row(
            "curl-user",
            &["curl", "wget", "http"],
            r#"\b(?:curl|wget|https?)\b[^\n|;]*?\s(?:-u|--user|--proxy-user|-U)[ =]?["']?[^\s:"']+:(?P<v>[^\s"'@]{2,})"#,
            "curl -u dev:fake-pass-1 https://example.com",
            "curl -u dev https://example.com:80",
        )
    },
    Rule {
        near: hit::flagged,
        check: plausible::password,
        ..row(
            "flag-secret",
            &[
                "passw",
                "passphrase",
                "token",
                "secret",
                "key",
                "credential",
            ],
            r#"(?i)(?:^|\s|["'\[,])--?(?:[a-z0-9]+-)*(?:password|passwd|passphrase|token|secret|api-?key|access-?key|secret-?key|auth-?token|client-?secret|private-?key|credential)(?:=|\s+|["'],\s*["'])["']?(?P<v>[^\s"'$<>(){}\[\],;|&-][^\s"',;|&]{3,})"#,
            "deploy --password fake-pass-1",
            "pass --password on the command line",
        )
    },
    Rule {
        near: hit::digits_come,
        // The words that a code follows are everywhere else as well.
        beside: &["code", "otp", "passcode"],
        ..row(
            "one-time-code",
            &[
                "otp",
                "2fa",
                "mfa",
                "one-time",
                "one time",
                "verification",
                "security",
                "login",
                "recovery",
                "backup",
            ],
            r"(?i)\b(?:otp|2fa|mfa|one[- ]time|verification|security|login|recovery|backup)[ -]?(?:code|password|passcode|pin)?\s*(?:is|:|=)\s*(?P<v>\d{3}[ -]?\d{3}|\d{4,8})\b",
            "your verification code is 000000",
            "exit code: 1",
        )
    },
];
