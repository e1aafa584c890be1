"""How large a text is in an answer: as the JSON that has the most to escape, so that every face can carry it."""

import json


def count_json_bytes(text: str) -> int:
    """Count the bytes of a text as JSON writes it in ASCII: six for most characters beyond it and for controls."""
    return len(json.dumps(text)) - 2


def count_diff_bytes(text: str) -> int:
    """Count the bytes of a diff: those of the file, or what JSON makes of them where that is out of proportion."""
    return max(len(text.encode("utf-8", "surrogatepass")), count_json_bytes(text) // 4)
