from exeora_ws.processes.output import HeadAndTail, Ring, Stream, Tail, count_torn, decode_whole
from hypothesis import given
from hypothesis import strategies as st

pieces = st.lists(st.binary(max_size=40), max_size=40)
text_pieces = st.text(max_size=60).map(lambda text: [bytes([byte]) for byte in text.encode()])
limits = st.integers(4, 64)


def read_all(ring, limit, *, final=True):
    cursor, text, skipped = 0, "", 0
    while True:
        chunk = ring.read(cursor, limit, final=final)
        text, skipped = text + chunk.text, skipped + chunk.skipped
        if chunk.next_cursor == cursor + chunk.skipped and not chunk.text:
            return text, skipped, chunk.next_cursor
        cursor = chunk.next_cursor


@given(pieces, limits)
def test_chunks_join_to_exactly_what_was_written(written, limit):
    ring = Ring(100_000)
    for piece in written:
        ring.append(piece)
    whole = b"".join(written)
    assert read_all(ring, limit) == (whole.decode("utf-8", "replace"), 0, len(whole))


@given(text_pieces, limits)
def test_case_32_a_character_sent_byte_by_byte_is_never_cut(bytes_of_text, limit):
    """Read after every byte: no U+FFFD appears that was not sent, and the chunks join exactly."""
    ring, cursor, got = Ring(100_000), 0, ""
    for piece in bytes_of_text:
        ring.append(piece)
        chunk = ring.read(cursor, limit, final=False)
        assert len(chunk.text.encode()) <= limit
        cursor, got = chunk.next_cursor, got + chunk.text
    assert got + read_all(ring, limit)[0][len(got) :] == b"".join(bytes_of_text).decode()


@given(pieces, st.integers(1, 50), limits, st.data())
def test_cursors_are_absolute_and_what_was_lost_is_counted(written, keep, limit, data):
    ring, whole = Ring(keep), b"".join(written)
    for piece in written:
        ring.append(piece)
    cursor = data.draw(st.integers(0, len(whole)))
    chunk = ring.read(cursor, limit, final=True)
    begin = cursor + chunk.skipped
    assert ring.end == len(whole)
    assert ring.start == max(0, len(whole) - keep)
    assert begin >= ring.start or begin == len(whole)
    assert chunk.skipped == 0 or begin - ring.start <= 3
    piece = whole[begin : begin + limit]
    assert chunk.text == decode_whole(piece, final=begin + len(piece) == len(whole))[0]
    assert begin <= chunk.next_cursor <= len(whole)


@given(st.text(min_size=1), st.integers(1, 30))
def test_text_after_a_gap_begins_with_a_whole_character(text, keep):
    ring = Ring(keep)
    ring.append(text.encode())
    chunk = ring.read(0, 10_000, final=True)
    assert text.endswith(chunk.text)
    assert chunk.skipped + len(chunk.text.encode()) == len(text.encode())


def test_a_flood_stays_flat():
    ring, tail = Ring(256_000), Tail(200_000)
    for _ in range(500):
        ring.append(b"y\n" * 32_768)
        tail.append(Stream.STDOUT, b"y\n" * 32_768)
    assert len(ring._data) <= 256_000 + 65_536
    assert tail._size == 200_000
    assert len(tail.text(Stream.STDOUT)) == 200_000


@given(st.lists(st.tuples(st.sampled_from(Stream), st.binary(max_size=30)), max_size=40), st.integers(1, 100))
def test_the_tail_is_the_last_bytes_of_both_outputs_together(written, limit):
    tail = Tail(limit)
    for stream, piece in written:
        tail.append(stream, piece)
    every = [(stream, byte) for stream, piece in written for byte in piece]
    for stream in Stream:
        kept = bytes(byte for owner, byte in every[-limit:] if owner is stream)
        lost = any(owner is stream for owner, _ in every[:-limit])
        assert tail.text(stream) == kept[count_torn(kept) if lost else 0 :].decode("utf-8", "replace")
    assert tail.truncated is (len(every) > limit)


def test_many_small_pieces_take_little_room():
    tail = Tail(200_000)
    for _ in range(50_000):
        tail.append(Stream.STDOUT, b"x")
    assert len(tail._pieces) < 10


@given(pieces, st.integers(0, 30), st.integers(4, 30))
def test_head_and_tail_say_how_much_is_between(written, head, tail):
    kept, whole = HeadAndTail(head, tail), b"".join(written)
    for piece in written:
        kept.append(Stream.STDERR, piece)
    first, gap, last = kept.parts(Stream.STDERR)
    if len(whole) <= head + tail:
        assert (first, gap, last) == (whole.decode("utf-8", "replace"), 0, "")
    else:
        text, used = decode_whole(whole[:head], final=False)
        assert first == text
        assert last == whole[used + gap :].decode("utf-8", "replace")


def test_nuls_and_carriage_returns_survive():
    ring = Ring(100)
    ring.append(b"a\0b\r10%\r20%")
    assert ring.read(0, 100, final=False).text == "a\0b\r10%\r20%"
