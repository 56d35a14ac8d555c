"""The formulas of docstrings, typeset: ``dx = dy / (1 + x**2)`` as MathML, which browsers show without scripts or fonts.

The notation is that of the docstrings: ``*`` or a space multiply, ``/`` makes a fraction, ``**`` or ``^`` a power, ``x_i`` and
``x[i]`` have an index, ``|x|`` is the absolute value, ``[x > 0]`` is 1 where the condition holds, ``sum_j`` adds up what follows.
A formula with words in it is not typeset: :func:`typeset` returns None, and it stays code.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?(?:\.\.\.)?i?)|(?P<name>[A-Za-z]+\d?(?:_[A-Za-z0-9]+)*'*)|(?P<sign>\.\.\.|\*\*|==|!=|<=|>=|_\(|[-+*/^@=<>()\[\]|,.·_{}])"
)
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "lambd": "λ", "eps": "ε", "pi": "π", "phi": "φ", "Phi": "Φ", "Gamma": "Γ", "theta": "θ"}  # fmt: skip
SIGNS = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥", "*": "⋅", "·": "⋅", "-": "−", "...": "…"}  # fmt: skip
BIG = {"sum": "∑", "prod": "∏", "max": "max", "min": "min", "mean": "mean"}
# Words that are names of quantities; any other word of more than two letters must be a function before its parenthesis.
NAMES = {*GREEK, "margin", "threshold", "value", "scale", "mask", "size", "weight", "bias", "mean", "var", "ddof", "min", "max", "log", "Re", "Im",
         "min_val", "max_val", "dys", "base", "grid", "dgrid", "variance", "offset", "keepdims", "axis", "key", "indices", "shift"}  # fmt: skip
COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")


class Words(Exception):
    """The formula has words in it, or signs nobody typeset yet."""


class Token(NamedTuple):
    kind: str
    text: str
    spaced: bool  # there is a space before it


def typeset(formula: str) -> str | None:
    """The formula as MathML, or None if it has words in it."""
    try:
        parser = Parser(_tokens(formula))
        content = parser.equation()
        parser.expect("end")
    except Words:
        return None
    return f"<math>{content}</math>"


def _tokens(text: str) -> list[Token]:
    found, at = [], 0
    while at < len(text):
        spaces = len(text[at:]) - len(text[at:].lstrip())
        at += spaces
        match = TOKEN.match(text, at)
        if match is None:
            raise Words(text[at:])
        found.append(Token(str(match.lastgroup), match[0], spaces > 0))
        at = match.end()
    return [*found, Token("end", "end", False)]


def row(*parts: str) -> str:
    return f"<mrow>{''.join(parts)}</mrow>"


def sign(text: str) -> str:
    shown = SIGNS.get(text, text)
    return f"<mo>{html.escape(shown).replace('|', '&#124;').replace('[', '&#91;').replace(']', '&#93;')}</mo>"


def fenced(left: str, content: str, right: str) -> str:
    return row(sign(left), content, sign(right))


def bare(content: str) -> str:
    """Without the parentheses around all of it: a fraction and an exponent need none."""
    opening, closing = f"<mrow>{sign('(')}", f"{sign(')')}</mrow>"
    if content.startswith(opening) and content.endswith(closing):
        inner, depth = content[len(opening) : -len(closing)], 0
        for mark in re.findall(r"<mo>[()]</mo>", inner):
            depth += 1 if "(" in mark else -1
            if depth < 0:
                return content
        return row(inner)
    return content


class Parser:
    """By recursive descent, one method for each strength of binding; each returns MathML."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.at = tokens, 0
        self.bars = 0  # inside |...|, where the next bar closes

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self, *texts: str) -> str:
        """The next token's text if it is one of these."""
        if self.next.kind != "number" and self.next.text in texts:
            self.at += 1
            return self.tokens[self.at - 1].text
        return ""

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise Words(self.next.text)

    def equation(self) -> str:
        parts = [self.choice()]
        while self.next.text in ("=", "+"):
            if self.take("+"):
                self.expect("=")
                parts.append(sign("+="))
            else:
                self.expect("=")
                parts.append(sign("="))
            parts.append(self.choice())
        return row(*parts)

    def choice(self) -> str:
        """``a where x > 0, else b`` and ``a if x > 0 else b``: two lines behind a brace."""
        first = self.sum()
        if not self.take("where", "if"):
            return first
        condition = self.comparison()
        self.take(",")
        self.expect("else")
        other = self.sum()
        lines = ((first, row("<mtext>if&nbsp;</mtext>", condition)), (other, "<mtext>else</mtext>"))
        cells = "".join(f"<mtr><mtd>{value}</mtd><mtd>{when}</mtd></mtr>" for value, when in lines)
        return row('<mo class="brace">{</mo>', f'<mtable columnalign="left">{cells}</mtable>')

    def comparison(self) -> str:
        parts = [self.sum()]
        while text := self.take(*COMPARISONS):
            parts += [sign(text), self.sum()]
        return row(*parts)

    def sum(self) -> str:
        parts = [sign("-")] if self.take("-") else []
        parts.append(self.product())
        while self.next.text in ("+", "-") and self.tokens[self.at + 1].text != "=":
            parts += [sign(self.take("+", "-")), self.product()]
        return row(*parts)

    def product(self) -> str:
        result = self.power()
        while True:
            if self.take("/"):
                result = f"<mfrac>{bare(result)}{bare(self.power())}</mfrac>"
            elif text := self.take("*", "@", "·"):
                result = row(
                    result,
                    sign(text) if text != "*" else '<mo lspace="0.1em" rspace="0.1em">⋅</mo>',
                    self.power(),
                )
            elif self.starts_operand():
                result = row(result, '<mspace width="0.17em"></mspace>', self.power())
            else:
                return result

    def starts_operand(self) -> bool:
        token = self.next
        if token.kind == "name":
            return token.text not in ("where", "if", "else")
        return (
            token.kind == "number"
            or token.text in ("(", "[", "...")
            or (token.text == "|" and self.bars == 0)
        )

    def power(self) -> str:
        if self.take("-"):
            return row(sign("-"), self.power())
        result = self.operand()
        if self.take("**", "^"):
            raised = self.power()
            return f"<msup>{result}{bare(raised)}</msup>"
        return result

    def operand(self) -> str:
        token = self.next
        if token.kind == "number":
            self.at += 1
            return f"<mn>{token.text.replace('...', '…')}</mn>"
        if self.take("..."):
            return sign("...")
        if self.take("("):
            return self.indexed(self.group("(", ")"))
        if self.take("["):
            return self.group("[", "]")
        if self.take("|"):
            self.bars += 1
            content = self.sum()
            self.expect("|")
            self.bars -= 1
            return self.indexed(fenced("|", content, "|"))
        if token.kind == "name":
            self.at += 1
            return self.name(token.text)
        raise Words(token.text)

    def group(self, opening: str, closing: str) -> str:
        """Arguments or conditions up to a bracket."""
        outer, self.bars = self.bars, 0
        parts = [self.argument()]
        while self.take(","):
            parts += [sign(","), self.argument()]
        self.expect(closing)
        self.bars = outer
        return fenced(opening, row(*parts), closing)

    def argument(self) -> str:
        value = self.comparison()
        return row(value, sign("="), self.comparison()) if self.take("=") else value

    def name(self, text: str) -> str:
        word, _, index = text.partition("_")
        called = self.next.text == "(" and not self.next.spaced
        if word in BIG and index and not called and text not in NAMES:
            return self.big(word, row(*(f"<mi>{letter}</mi>" for letter in index)))
        if word in BIG and self.take("_("):
            return self.big(word, self.inside())
        if word == "sqrt" and called:
            self.expect("(")
            return f"<msqrt>{bare(self.group('(', ')'))}</msqrt>"
        if word == "abs" and called:
            self.expect("(")
            return fenced("|", bare(self.group("(", ")")), "|")
        if called and text not in NAMES:
            # A short index stays one: I_0(x); any other name is that of a function: log_softmax(x).
            shown = (
                self.symbol(text)
                if len(index) <= 1
                else f'<mi mathvariant="normal">{text.replace("_", "&#95;")}</mi>'
            )
            self.expect("(")
            return self.indexed(row(shown, self.group("(", ")")))
        return self.indexed(self.symbol(text))

    def big(self, word: str, below: str) -> str:
        """A sum, product or maximum over an index, of all factors that follow."""
        shown = f"<munder>{sign(BIG[word])}{below}</munder>"
        parts = [self.power()]
        while self.starts_operand():
            parts += ['<mspace width="0.17em"></mspace>', self.power()]
        return row(shown, *parts)

    def inside(self) -> str:
        """The rest of a parenthesis around an index."""
        parts = [self.comparison()]
        while self.take(","):
            parts += [sign(","), self.comparison()]
        self.expect(")")
        return row(*parts)

    def indexed(self, content: str) -> str:
        if self.take("_("):
            return f"<msub>{content}{self.inside()}</msub>"
        if self.next.text == "_" and not self.next.spaced:
            self.at += 1
            return f"<msub>{content}{self.operand()}</msub>"
        if self.next.text == "[" and not self.next.spaced:
            self.expect("[")
            return f"<msub>{content}{self.group('[', ']')}</msub>"
        if self.take("."):  # b.mT and x.shape
            attribute = self.next.text
            self.at += 1
            if attribute not in ("T", "mT"):
                raise Words(attribute)
            return f'<msup>{content}<mi mathvariant="normal">T</mi></msup>'
        return content

    def symbol(self, text: str) -> str:
        primes = len(text) - len(text.rstrip("'"))
        text = text.rstrip("'")
        word, _, index = text.partition("_")
        if index and (len(index) > 2 or text in NAMES):
            if text not in NAMES:
                raise Words(text)
            return f'<mi mathvariant="normal">{text.replace("_", "&#95;")}</mi>'
        shown = self.letters(word)
        if primes:
            shown = f"<msup>{shown}<mo>{'′' * primes}</mo></msup>"
        return f"<msub>{shown}{row(*(f'<mi>{letter}</mi>' for letter in index))}</msub>" if index else shown

    def letters(self, word: str) -> str:
        if word in GREEK:
            return f"<mi>{GREEK[word]}</mi>"
        if (
            word.startswith("d")
            and len(word) > 1
            and (len(word) == 2 or word[1:] in NAMES or word[2:].isdigit())
        ):
            return row('<mi mathvariant="normal">d</mi>', self.letters(word[1:]))
        if len(word) == 2 and word[1].isdigit():
            return f"<msub><mi>{word[0]}</mi><mn>{word[1]}</mn></msub>"
        if len(word) == 1:
            return '<mi mathvariant="normal">T</mi>' if word == "T" else f"<mi>{word}</mi>"
        if word in NAMES or (self.next.text == "(" and not self.next.spaced):
            return f'<mi mathvariant="normal">{word}</mi>'
        raise Words(word)
