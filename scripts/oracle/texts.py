"""Random strings for tokenisers: words of many scripts, blanks, characters of all of Unicode."""

WORDS = ("the and of to in is for that with as model network don't I'll we've they're it's you'd HELLO Hello world "
         "function return int float void const static struct printf std::vector <html> http://example.org/a?b=c "
         "naïve café über straße Œuvre señor Привет мир как дела Ελληνικά שלום العربية हिन्दी ภาษาไทย 日本語 中文字符 한국어 "
         "３．１４ ½ ² Ⅷ ٣٤ 1984 3.14159 2,300 0x1F 1e-5 e\u0301 fi ﬁ Ǆ").split()
RANGES = {
    "ascii": [(0x20, 0x7E)],
    "letters": [(0x61, 0x7A), (0x41, 0x5A)],
    "digits": [(0x30, 0x39)],
    "controls": [(0x00, 0x1F), (0x7F, 0x9F)],
    "latin": [(0xA0, 0x24F)],
    "greek, cyrillic": [(0x370, 0x3FF), (0x400, 0x52F)],
    "hebrew, arabic": [(0x5D0, 0x5EA), (0x600, 0x6FF)],
    "indic, thai": [(0x900, 0x97F), (0xE00, 0xE7F)],
    "marks, punctuation": [(0x300, 0x36F), (0x2000, 0x206F), (0x3000, 0x303F)],
    "symbols, number forms": [(0x20A0, 0x20BF), (0x2150, 0x218F), (0x2190, 0x22FF), (0x2460, 0x24FF), (0x2580, 0x259F)],
    "cjk": [(0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3)],
    "emoji": [(0x1F300, 0x1F64F), (0x1F680, 0x1F6FF), (0x1F900, 0x1F9FF), (0x200D, 0x200D), (0xFE0F, 0xFE0F)],
    "other planes": [(0x10000, 0x1044F), (0x1D400, 0x1D7FF), (0x20000, 0x2A6DF), (0xE0000, 0xE007F), (0x100000, 0x10FFFD)],
    "anything": [(0x00, 0xD7FF), (0xE000, 0x10FFFF)],
}
BLANKS = [" ", "  ", "   ", "    ", " " * 9, " " * 33, "\n", "\n\n", "\n" * 5, "\n" * 33, "\t", "\t\t", "\r\n", " \n ", "\n  ",
          "\u00a0", "\u2003", "\u3000", "\u2028", "\x0b", "\x0c", "\x85"]


def random_text(rng, special):
    """A short string of one to six pieces of different kinds; `special` texts appear in about a tenth of them."""
    parts = []
    for _ in range(rng.randint(1, 6)):
        draw = rng.random()
        if draw < 0.35:
            parts.append(" ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 3))))
        elif draw < 0.55:
            parts.append(rng.choice(BLANKS))
        elif draw < 0.57:
            parts.append(rng.choice(special))
        else:
            low_high = RANGES[rng.choice(list(RANGES))]
            parts.append("".join(chr(rng.randint(*rng.choice(low_high))) for _ in range(rng.randint(1, 6))))
    return "".join(parts)
