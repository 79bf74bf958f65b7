"""The table of languages: how an answer is announced in each of them.

A row says what "the answer" is called, what stands between it and the value (besides a colon), what
an option is called, and whether decimals have a comma. The words are used together: models change
their language in the middle of a response, so a response is not assigned to one language.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """One row of the table.

    Attributes
    ----------
    answers
        What "answer" is called, in regular expressions without groups.
    answer_words
        Parts of words, separated by spaces: whatever `answers` matches has one of them.
    verbs
        What stands between "the answer" and the value: "is".
    options
        What the options of a multiple-choice question are called.
    decimal_comma
        Whether ``2,5`` is two and a half.
    """

    answers: str
    answer_words: str
    verbs: str
    options: str = ""
    decimal_comma: bool = False


LANGUAGES: dict[str, Language] = {
    "zh": Language(
        answers="(?:最终|正确)?的?(?:答案|结果|选项|答)",
        answer_words="答 结果 选项",
        verbs="应该是|应该为|就是|应为|是|为|等于|选",
        options="选项|选择|选",
    ),
    "ja": Language(
        answers="(?:最終的な)?(?:答え|解答|正解|回答|答)",
        answer_words="答 正解",
        verbs="は",
        options="選択肢",
    ),
    "ko": Language(
        answers="(?:최종 ?)?(?:정답|답변|답)", answer_words="답", verbs="은|는", options="선택지"
    ),
    "fr": Language(
        answers="(?:bonne |la )?réponse(?: finale| correcte)?|résultat(?: final)?",
        answer_words="réponse résultat",
        verbs="est donc|est|serait|vaut",
        options="option|choix|lettre",
        decimal_comma=True,
    ),
    "de": Language(
        answers="(?:richtige |endgültige )?antwort|(?:end)?ergebnis|lösung",
        answer_words="antwort ergebnis lösung",
        verbs="ist also|ist|lautet|beträgt",
        options="option|antwort",
        decimal_comma=True,
    ),
    "es": Language(
        answers="respuesta(?: final| correcta)?|resultado(?: final)?",
        answer_words="respuesta resultado",
        verbs="es por lo tanto|es|sería",
        options="opción|letra",
        decimal_comma=True,
    ),
    "pt": Language(
        answers="resposta(?: final| correta)?|resultado(?: final)?",
        answer_words="resposta resultado",
        verbs="é portanto|é|seria",
        options="opção|alternativa|letra",
        decimal_comma=True,
    ),
    "it": Language(
        answers="risposta(?: finale| corretta)?|risultato(?: finale)?",
        answer_words="risposta risultato",
        verbs="è quindi|è",
        options="opzione|lettera",
        decimal_comma=True,
    ),
    "nl": Language(
        answers="(?:juiste )?antwoord",
        answer_words="antwoord",
        verbs="is dus|is",
        options="optie",
        decimal_comma=True,
    ),
    "pl": Language(
        answers="(?:poprawna )?odpowiedź|odpowiedz|wynik",
        answer_words="odpowied wynik",
        verbs="to|jest|wynosi",
        options="opcja",
        decimal_comma=True,
    ),
    "ru": Language(
        answers="(?:правильный |окончательный )?ответ|результат",
        answer_words="ответ результат",
        verbs="равен|—|–|это",
        options="вариант",
        decimal_comma=True,
    ),
    "tr": Language(
        answers="(?:doğru |nihai )?(?:cevap|yanıt)|sonuç",
        answer_words="cevap yanıt sonuç",
        verbs="şudur",
        options="seçenek",
        decimal_comma=True,
    ),
    "vi": Language(
        answers="đáp án(?: đúng)?|câu trả lời|kết quả",
        answer_words="đáp trả quả",
        verbs="là",
        options="lựa chọn",
        decimal_comma=True,
    ),
    "id": Language(
        answers="jawaban(?: akhir(?:nya)?)?(?:nya)?",
        answer_words="jawaban",
        verbs="adalah",
        options="pilihan",
        decimal_comma=True,
    ),
    "ar": Language(
        answers="(?:الإجابة|الاجابة|الجواب)(?: النهائية| الصحيحة| النهائي)?",
        answer_words="جابة جواب",
        verbs="هي|هو",
    ),
    "hi": Language(
        answers="(?:सही |अंतिम )?(?:उत्तर|जवाब)", answer_words="उत्तर जवाब", verbs=r"है|(?= ?[-\d$])"
    ),
}
DECIMAL_COMMA = frozenset(
    [code for code, language in LANGUAGES.items() if language.decimal_comma] + ["uk", "cs", "sv"]
)
"""Languages with a decimal comma, as two-letter codes."""


_FUNCTION_WORDS = {
    code: frozenset(words.split())
    for code, words in {
        "de": "wie viel ist die der das und eine ein gib als welche sind wird den von mit für",
        "fr": "combien est la le les des une un quel quelle dans pour avec sont donne donnez sur",
        "es": "cuánto cuántos es el la los las una un qué cuál para con son entre escribe del por",
        "pt": "quanto quantos é os as uma um qual para com são entre escreva do da por",
        "it": "quanto quanti è il la gli una un qual quale per con sono tra scrivi del della",
        "nl": "hoeveel is de het een en wat welke van met voor zijn geef als",
        "pl": "ile jest oraz jaka jaki podaj dla są na",
        "ru": "сколько равен равна чему и в на из найдите чему каков какова",
        "tr": "kaç kaçtır ve bir nedir için ile olarak",
        "vi": "bao nhiêu là của và một cho với hãy",
        "id": "berapa adalah dan yang sebuah untuk dengan dari",
    }.items()
}
_MIN_FUNCTION_WORDS = 3
_ENGLISH = re.compile(
    r"\b(?:the|of|and|what|how|find|compute|evaluate|determine|let|with|for|if|that|are|which|each|"
    r"from|given|she|he|they|her|his)\b"
)
"""Words that none of the languages with a decimal comma has in a mathematical question."""
_NO_PROSE = re.compile(
    r"\$[^$]*\$|\\\(.*?\\\)|\\\[.*?\\\]|\[asy\].*|\\begin\{(\w+)\}.*?\\end\{\1\}|\\[a-zA-Z]+",
    re.DOTALL,
)


def asked_in(prompt: str) -> str:
    """Tell a question's language with a decimal comma by its small words; empty if it has none.

    Three different ones are needed, and no English one; letters in formulas are not words.

    Examples
    --------
    >>> asked_in("Wie viel ist 25 geteilt durch 2? Gib die Antwort als Dezimalzahl an.")
    'de'
    >>> asked_in("What is 25 divided by 2?"), asked_in("Let $a$, $e$ be roots. Is o a root?")
    ('', '')
    """
    prose = _NO_PROSE.sub(" ", prompt[:1000].lower())
    if _ENGLISH.search(prose):
        return ""
    words = {word for word in re.findall(r"[^\W\d_]+", prose) if len(word) > 1 or word > "z"}
    found = {code: len(words.intersection(listed)) for code, listed in _FUNCTION_WORDS.items()}
    best = max(found, key=lambda code: found[code])
    return best if found[best] >= _MIN_FUNCTION_WORDS else ""


def _all(attribute: str) -> str:
    """One alternative of all languages' words, longest first."""
    words = [getattr(language, attribute) for language in LANGUAGES.values()]
    return "|".join(word for word in words if word)


class ForeignMark:
    """A pattern of many languages' words: slow, so it is used only where one of the words is.

    Parameters
    ----------
    pattern
        A regular expression; case is ignored.
    words
        Each of its matches has one of them, in lower case.
    """

    def __init__(self, pattern: str, words: list[str]) -> None:
        self._pattern = re.compile(pattern, re.IGNORECASE)
        self._words = words

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Find all matches, as `re.Pattern.finditer` does."""
        lowered = text.lower()
        found = any(word in lowered for word in self._words)
        return self._pattern.finditer(text) if found else iter(())


ANNOUNCEMENT = ForeignMark(
    rf"(?:{_all('answers')})[ \t]{{0,2}}[*_]{{0,3}}[ \t]{{0,2}}"
    rf"(?:[:：=]|(?:{_all('verbs')})[ \t]{{0,2}}[:：]?)[ \t*_]{{0,6}}\s{{0,2}}"
    r"(?:(?:la|el|le|les|die|der|das|il|lo) )?",
    [word for language in LANGUAGES.values() for word in language.answer_words.split()],
)
"""How other languages than English announce the answer: "答案是", "la réponse est"."""
OPTION_WORDS = _all("options")
CHOSEN = ForeignMark(
    rf"(?:{OPTION_WORDS})[ \t]{{0,2}}[:：][ \t*_]{{0,4}}|(?:选择|应选|故选|选)[ \t*_]{{0,4}}",
    [word for word in OPTION_WORDS.split("|") if word != "option"],  # it is English too
)
"""How an option is named: "选 B", "opción: B"."""

CHINESE_UNITS = {
    "平方米": "m^2", "平方厘米": "cm^2", "平方千米": "km^2", "平方公里": "km^2", "平方分米": "dm^2",
    "立方米": "m^3", "立方厘米": "cm^3", "立方分米": "dm^3", "米": "m", "厘米": "cm", "毫米": "mm",
    "千米": "km", "公里": "km", "分米": "dm", "克": "g", "千克": "kg", "公斤": "kg", "吨": "tonne",
    "秒": "s", "分钟": "min", "小时": "h", "天": "day", "升": "L", "毫升": "mL", "度": "degrees",
    "元": "yuan", "美元": "dollars", "千米/小时": "km/h", "米/秒": "m/s", "年": "year",
    "个月": "month",
    "岁": "years",
}  # fmt: skip
"""Chinese names of units with a spelling that the table of units has."""
CHANGING = re.compile("[或至到不非约左右上下多少和与及]|以上|以下|以内|と|または|또는")
"""Characters after a number that change what it means."""
