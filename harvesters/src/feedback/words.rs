//! The words by which people judge work, in English and in other languages. Each is a
//! pattern for the first sentences of a prompt in lower case.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

pub(super) type Pattern = LazyLock<Option<Regex>>;

/// Patterns are constants and tested; a broken one would only match nothing.
fn pattern(parts: &[&str]) -> Option<Regex> {
    RegexBuilder::new(&parts.join("|"))
        .size_limit(8 << 20)
        .build()
        .ok()
}

pub(super) fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(text))
}

/// Complaints in English.
pub(super) static DISAPPROVAL: Pattern = LazyLock::new(|| {
    pattern(&[
        // No, with what makes it no complaint left out.
        r"^(?:no|nope|nah|noo+|wrong|incorrect|false|bad|ugh|wtf|argh|hm+,? no)(?:[,.!:;]|\s*-|\s*$)(?:\s*(?:$|[^\spnw]|p[^r]|n[^e]|w[^o]|wr))",
        r"^(?:no|nope),? (?:that|this|it|you|don't|do not|not|revert|undo|i|we|the|there|still|stop|keep|leave|use)\b",
        r"\bstill (?:\w+ ){0,2}?(?:broken|wrong|fail\w*|not|doesn't|does not|don't|do not|isn't|aren't|red|crash\w*|error\w*|the same|there|missing|incorrect|happen\w*|get\w*|see\w*|show\w*|print\w*|have|has|can't|cannot|wont|won't|slow|buggy|off|no)\b",
        r"^(?:but )?(?:it|that|this|they|these|those|you|which|all|everything|nothing) (?:(?:still|also|really|just|now) )?(?:do|does|did|is|are|was|were|has|have|can|could|will|would)(?:n't| not)\b",
        r"^(?:but )?(?:it|that|this|they|these|the (?:fix|change|patch|code|test|tests|build|result|output)) (?:\w+ )?(?:doesn't|don't|didn't|isn't|aren't|wasn't|weren't|won't|can't|does not|do not|did not|is not|are not)\b",
        r"^(?:but )?(?:that's|thats|that is|this is|it's|its|it is|you're|you are|they're|they are|these are) (?:still |also |just |completely |totally |all |so |even |actually |clearly )*(?:not (?:right|correct|what|it|working|fixed|good|enough|done|true|how|the)|wrong|incorrect|broken|worse|bad|terrible|awful|useless|nonsense|false|a mess|unacceptable|failing)\b",
        r"\b(?:doesn't|does not|didn't|did not|don't|isn't|is not|not) (?:work|working|help|fix(?:ed)?)\b(?: for| in| on| with| at all| anymore| any more| yet| again|[.,!:;]|\s*$)",
        r"^(?:not (?:quite|really|what|right|correct|good|fixed|working|done|like that|there)|nothing (?:changed|happens?|works?))\b",
        r"\b(?:fails?|failing|failed|broken|wrong|error|errors|crash(?:es|ed)?) again\b|\b(?:same|another) (?:\w+ )?(?:error|problem|issue|failure|result|bug)\b",
        r"^now (?:it|there|i|the|all|everything|another|other) .*(?:fail|broke|error|crash|wrong|worse|missing)",
        r"\byou (?:broke|forgot|missed|ignored|deleted|misread|misunderstood|overlooked|didn't|did not|shouldn't|should not|should have|were supposed|made it worse|keep|removed the wrong|changed the wrong|left out|lied|hallucinated|made (?:that|this|it) up)\b",
        r"^(?:i (?:said|asked|told you|meant|wanted|didn't (?:ask|want|say)|did not (?:ask|want|say)|never (?:asked|said))|as i said|like i said|again,)\b",
        r"^why (?:did|do|are|would) you\b",
        r"^(?:stop|wait|hold on|hang on)[,.! ]*(?:that|this|it|you|don't|no|not|doing|$)",
        r"\bi (?:had to )?(?:fixed|reverted|undid|fix|revert) (?:it|that|this) (?:myself|by hand|manually)\b|\bfixed (?:it|that|this) myself\b",
        r"^(?:way |far |much |a bit |a little |that's |it's |this is )*too (?:long|short|slow|verbose|complicated|complex|much|many|big|wordy|vague)\b",
        r"\b(?:made|makes|got|it's|is) (?:it |things |this )?(?:even |much )?worse\b",
        r"^(?:please )?(?:revert|undo|roll ?back|put (?:it|that|this) back|restore (?:it|that|the)|take (?:it|that|this) back)\b",
        r"\b(?:revert|undo|roll back) (?:that|this|it|your|all|everything|the (?:change|changes|last|edit|edits|commit))\b",
        r"\b\d+ (?:\w+ )?(?:are|is) still\b",
        r"\bthat's not (?:it|right|correct|true|what|how)\b",
        r"^(?:try again|redo|do it again|once more)\b",
        r"^no(?: no)+\b|^no (?:change|luck|difference|effect)\b|^stop \w+ing\b",
        r"^(?:doesn't|does not|didn't|did not|won't) \w+",
        r"^(?:it|that|this) (?:just |also |now )?(?:broke|breaks|crashe[sd]|fails|failed|hangs|throws|freezes|stopped working)\b",
        r"^now [\w./-]+ (?:\w+ )?(?:fails?|breaks?|crashes|hangs)\b|\b(?:is|are) (?:\w+ )?(?:failing|broken|red|empty|missing|gone|wrong) now\b",
        r"^(?:that's|thats|that is|this is|it's|its) the wrong\b|^(?:(?:that|this|it) )?looks (?:wrong|off|broken|bad|weird)\b",
        r"^(?:almost|nearly|close|not there yet)\b[^.!?]*\bbut\b",
        r"\broll (?:that|this|it) back\b|(?:^|[,.] )go back to the (?:old|previous|original|last)\b|^(?:bad|wrong|terrible) (?:idea|approach|direction)\b",
        r"^you (?:introduced|removed|renamed|only (?:fixed|changed|did|handled|updated))\b|\byou (?:added|wrote|made|changed) (?:is|are|fails?|breaks?|doesn't)\b",
        r"\b(?:worked|passed|used to work) (?:fine )?before\b|\b(?:fix|change|patch|solution) is (?:incomplete|wrong|incorrect)\b",
        r"\bthat's (?:way |far |much )?too (?:long|short|slow|verbose|complicated|complex|much|many|big|wordy|vague)\b",
    ])
});

/// Complaints in other languages.
pub(super) static DISAPPROVAL_ABROAD: Pattern = LazyLock::new(|| {
    pattern(&[
        r"^(?:nein|non|nee|нет)\b[,.! ]",
        r"\b(?:immer noch|noch immer|nach wie vor) (?:\w+ ){0,2}?(?:nicht|falsch|kaputt|rot|fehler\w*|der|die|das|ein\w*|kein\w*|schlägt|schlagen)\b",
        r"\b(?:funktioniert|geht|klappt|läuft|stimmt|passt|hilft) (?:(?:so|immer|noch|leider|aber|auch|das|es) )*nicht\b",
        r"^(?:das|es|dies) ist (?:\w+ )?(?:falsch|kaputt|nicht richtig|schlimmer|verkehrt)\b|^falsch\b|\bmach (?:das|es) (?:wieder )?rückgängig\b|^nicht (?:richtig|ganz|so|gut)\b",
        r"\b(?:marche|fonctionne|compile) (?:toujours )?(?:pas|plus)\b",
        r"\b(?:ne|n'\w+) (?:marche|fonctionne|compile|passe) (?:toujours )?(?:pas|plus)\b|\btoujours (?:pas|cassé|faux|en échec|la même)\b|\bc'est (?:faux|pas|toujours|cassé|incorrect)\b|\bannule\b|^pas (?:bon|ça|correct)\b",
        r"\bno (?:funciona|sirve|compila|pasa|es correcto|es lo que)\b|\bsigue (?:fallando|sin|roto|igual|mal)\b|\bestá (?:mal|roto)\b|\btodavía (?:no|falla)\b|\bdeshaz\b|^incorrecto\b",
        r"\bnon (?:funziona|va|compila|è corretto|è giusto)\b|\bsbagliato\b|\bancora (?:rotto|sbagliato|non)\b",
        r"\bnão (?:funciona|está|compila|passa)\b|\bainda (?:não|errado|falha|quebrado)\b|\berrado\b",
        r"\bwerkt (?:nog steeds )?niet\b|\bnog steeds (?:niet|fout|kapot|stuk)\b|\bklopt niet\b",
        r"\bfungerar (?:fortfarande )?inte\b|\bvirker (?:stadig )?ikke\b|\bnie działa\b|\bnadal (?:nie|błąd)\b",
        r"^не то\b|не работает|неправильно|неверно|вс[её] (?:ещ[её]|равно)|опять|отмени|откати|сломал",
        r"不对|不行|错了|还是错|还是不|没有?用|没解决|不正确|有问题|又错|撤销|回滚|不是这样|失败了",
        r"違う|違います|ちがう|間違|まだ(?:動|直|失敗|エラー|だめ|ダメ|赤)|動かない|動きません|直って(?:い)?(?:ない|ません)|ダメ|だめ|元に戻",
        r"안 ?돼|안 ?됩|아직도|틀렸|여전히|되돌려|잘못",
        r"لا يعمل|خطأ|ليس صحيح|çalışmıyor|yanlış|hâlâ|काम नहीं|गलत",
    ])
});

/// Praise in English, at the start.
pub(super) static PRAISE: Pattern = LazyLock::new(|| {
    pattern(&[
        r"^(?:ok(?:ay)?[,.!]? |oh |wow[,.!]? |yes[,.!]? |yep[,.!]? |yeah[,.!]? |haha[,.!]? |ah[,.!]? )*(?:perfect(?:ly)?|excellent|awesome|amazing|brilliant|fantastic|wonderful|lovely|beautiful|superb|terrific|thanks|thank you|thx|tysm|ty|cheers|well done|kudos|bravo|lgtm|nailed it|you nailed|you rock|hooray|yay|woohoo)\b",
        r"^(?:ok(?:ay)?[,.!]? |oh |wow[,.!]? |yes[,.!]? |yep[,.!]? |yeah[,.!]? |very |really |that's |that is |this is |it's |looks |all |pretty |so )*(?:great|nice|cool|neat|sweet|good|not bad|impressive|exactly|spot on)(?: (?:work|job|stuff|one|catch|fix|find|idea|answer|now|thanks|point|enough|as is))?(?:[.,!:;]|\s*$|\s*-|\s*[👍🎉🙏❤😀😊🙌✅])",
        r"^(?:(?:ok(?:ay)?|oh|ah|aha|yes|yep|yeah)[,.!]? )*(?:it |that |this |everything |all |the (?:tests?|build|fix|change) )?(?:finally |now |really )?(?:works?|worked|passes|fixed|solved|compiles|runs)(?: it| (?:now|great|fine|well|perfectly|nicely|as expected|like a charm|for me|again))*(?:[.,!]|\s*$)",
        r"^(?:it|that|this|everything|all|now it|now everything) (?:now |finally )?(?:works|worked|fixed it|did it|solved it|does it|is fixed|is correct|is perfect|is great|looks (?:good|great|right|fine|perfect|nice))\b",
        r"^(?:all )?looks? (?:good|great|right|fine|perfect|nice|correct|awesome)\b",
        r"\b(?:works now|works (?:perfectly|great|fine|like a charm)|exactly what i (?:wanted|needed|meant|asked)|just what i (?:wanted|needed))\b",
        r"^(?:i )?(?:love|like) (?:it|that|this)\b|^(?:👍|🎉|🙏|❤|💯|✅|🚀|🔥)",
        r"^correct(?:[.,!]|\s*$)|^(?:(?:yes|yep|yeah|ok)[,.!]? )?(?:that's|that is|you're|you are) (?:correct|right|it)(?:[.,!]|\s*$)",
        r"^(?:that's |this is |it's |much |far |way |a lot )*better(?: now)?(?:[.,!]|\s*$)|^fine[,.!]? thank",
        r"^(?:all|everything|everything's|it's|tests are|ci is) (?:is |are )?(?:all )?green\b|^(?:all )?(?:the )?tests? (?:all )?(?:now )?pass(?:es|ed)?(?: now)?(?:[.,!]|\s*$)",
        r"\bdid the trick\b|^confirmed\b",
    ])
});

/// Praise in other languages, at the start.
pub(super) static PRAISE_ABROAD: Pattern = LazyLock::new(|| {
    pattern(&[
        r"^(?:sehr |alles |ja[,.!]? |ok[,.!]? )*(?:danke|vielen dank|perfekt|super|prima|klasse|toll|spitze|wunderbar|genial|gut gemacht|passt|sieht gut aus|funktioniert|klappt|läuft|sehr gut|ausgezeichnet)\b",
        r"^(?:merci|parfait|super|génial|nickel|excellent|bravo|très bien|bien joué|ça marche|c'est (?:bon|parfait|super))\b",
        r"^(?:muchas )?(?:gracias|perfecto|genial|excelente|muy bien|estupendo|funciona|buen trabajo|bien hecho)\b",
        r"^(?:grazie|perfetto|ottimo|bravo|funziona|benissimo|obrigad[oa]|perfeito|ótimo|funcionou|valeu|bedankt|perfect|mooi|top|tack|takk|tak|dzięki|dziękuję|świetnie|köszönöm|teşekkürler|mükemmel)\b",
        r"^(?:спасибо|отлично|супер|прекрасно|работает|класс|круто)",
        r"^(?:谢谢|感谢|很好|完美|太好了|太棒了|可以了|好了|不错|搞定|棒)",
        r"^(?:ありがと|完璧|いいね|素晴らしい|すばらしい|動きました|動いた|直りました|助かり)",
        r"^(?:고마|감사|완벽|좋아|잘했|잘 ?돼|잘 ?됩)|^(?:شكرا|ممتاز|धन्यवाद|बढ़िया)",
    ])
});

/// Praise that is taken back.
pub(super) static BUT: Pattern = LazyLock::new(|| {
    pattern(&[
        r"\b(?:but|however|except|although|though|unfortunately|aber|jedoch|leider|mais|cependant|pero|sin embargo|ma|però|mas|porém|maar|но|однако)\b",
        r"但|でも|けど|しかし|하지만|그런데",
    ])
});

/// Asking to go on after an interruption, or asking for nothing any more.
pub(super) static GO_ON: Pattern = LazyLock::new(|| {
    pattern(&[
        r"^(?:ok(?:ay)?[,.!]? |sorry[,.!]? |please )*(?:continue|go on|go ahead|carry on|resume|proceed|keep going|never ?mind|forget it|weiter|mach weiter|fahr fort|continuez?|continúa|sigue|prosegui|продолж|继续|続け|계속)\b?",
    ])
});

/// Asking to take work back.
pub(super) static REVERT: Pattern = LazyLock::new(|| {
    pattern(&[
        r"(?:^|[,.;:!-] ?|\bplease |\bjust |\bthen )(?:revert|undo|roll ?back|put (?:it|that|this) back|take (?:it|that|this) back|restore (?:it|that|this|the))\b",
        r"\b(?:revert|undo|roll back) (?:that|this|it|your|all|everything|the (?:change|changes|last|edit|edits|commit))\b",
        r"rückgängig|annule(?:z)? |deshaz|отмени|откати|撤销|回滚|元に戻|되돌려",
    ])
});

/// What begins so wants to know, whatever it says of failures. Thanks to somebody else are
/// no thanks.
pub(super) static ASKS_FOR: Pattern =
    LazyLock::new(|| pattern(&[r"^(?:which|list|show|how many|count) \w|^thanks to \w"]));

/// A request in the form of a question.
pub(super) static POLITE: Pattern = LazyLock::new(|| {
    pattern(&[
        r"\b(?:can|could|would|will) you\b|\bplease\b|\bkannst du\b|\bkönntest du\b|\bbitte\b|\bpeux-tu\b|\bpouvez-vous\b|\bpuedes\b|\bpodrías\b|\bwhy don't (?:you|we)\b|\bhow about\b",
    ])
});

/// Words that begin a question.
pub(super) static ASKS: Pattern = LazyLock::new(|| {
    pattern(&[
        r"^(?:what|which|why|how|where|when|who|whose|is|are|was|were|does|do|did|has|have|should|explain|describe|tell me|was|welche\w*|warum|wieso|wie|wo|wann|wer|erkläre|pourquoi|comment|quel\w*|où|qué|cuál|cómo|por qué|dónde)\b",
    ])
});

/// An answer that shows a complaint to be unfounded.
pub(super) static REBUTTAL: Pattern = LazyLock::new(|| {
    pattern(&[
        r"^(?:actually,? |no,? |in fact,? )*(?:it|this|that|they|the \w+) (?:already|in fact) (?:do|does|did|is|are|was|has|have|works?|handles?|passes|covers?)\b",
        r"^(?:this|that|it) (?:is|was) (?:already|expected|intended|by design|intentional)\b",
    ])
});
