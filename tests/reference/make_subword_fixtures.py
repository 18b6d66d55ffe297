#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/text/subwords: what Hugging Face's tokenizers make of texts, kind by kind.

    pip install tokenizers jinja2 transformers gguf
    tests/reference/make_subword_fixtures.py [--train] [--gemma3 gemma-3-270m.Q4_K_M.gguf]

Without --train the small tokenizers that are there are kept: training breaks ties in another order
each time. All else is deterministic. Their vocabularies come from this script's own sentences.

    more.jsonl       strings beside those of ../corpus.jsonl, one JSON string per line
    NAME.json        a small tokenizer.json in the shape that models of that name have
    gemma3.hashes    the same for the real Gemma 3 as transformers reads it from the GGUF file; not for
                     strings with "▁▁", which its own tokenizer.json knows as a token
    NAME.hashes      12 bits of a hash of the ids and the decoded text of each string, in hexadecimal;
                     "---" where Hugging Face's tables of Unicode are older than Unicode 14

Also for the four tokenizers of make_tokenizer_fixtures.py. Strings are those of corpus.jsonl, those
of more.jsonl, and pairs of them that a generator chooses which the test runs as well (pairs()).
"""

import json
import pathlib
import sys
import unicodedata

import make_tokenizer_fixtures as base
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

DATA = base.DATA / "subwords"
PAIRS = 2200

TEKKEN_REGEX = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BLOOM_REGEX = " ?[^(\\s|[.,!?…。，、।۔،])]+"

SPACE = "▁"
BASIC = ["<unk>", "<s>", "</s>"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIAL = BASIC + ["[INST]", "[/INST]", "<start_of_turn>", "<|user|>", "<|end|>", " <|end|> ", "<mask>",
                   " <mask>  ", "<word>", "a<word>", "<word> ", "<table>", "\n\n\n", "▁", "▁▁", "``"]


def training_texts():
    latin = ["".join(c for c in sentence if ord(c) < 0x250) for sentence in base.SENTENCES]
    return base.SENTENCES * 3 + latin * 8 + base.SNIPPETS[:20] + [" ".join(base.WORDS)] * 30


def byte_level(pre_tokenizer, special, size=650):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(training_texts(), trainer)
    return tokenizer


def trained_characters(special, size):
    """Tokens in order, special ones and bytes in front, and merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special + BYTES,
                                  limit_alphabet=150, show_progress=False)
    tokenizer.train_from_iterator(training_texts(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    for mark in (SPACE, "\n"):
        for size in (1, 2, 4):
            merges.append((mark * size, mark * size))
            tokens += [token for token in (mark * size, mark * 2 * size) if token not in tokens]
    return tokens, merges


def merges_of_scores(tokens, scores):
    """What transformers makes of a SentencePiece vocabulary that lists no merges."""
    merges = []
    for token in tokens:
        cuts = [(token[:i], token[i:]) for i in range(1, len(token))]
        cuts = [cut for cut in cuts if cut[0] in scores and cut[1] in scores]
        cuts.sort(key=lambda cut: (tokens.index(cut[0]), tokens.index(cut[1])))
        merges += [(left, right, scores[token]) for left, right in cuts]
    merges.sort(key=lambda merge: (merge[2], len(merge[0]), len(merge[1])), reverse=True)
    return [merge[:2] for merge in merges]


def characters(special=(), added=(), by_scores=False, bos=True, size=640, **parts):
    special = BASIC + list(special)
    tokens, merges = trained_characters(special, size)
    if by_scores:
        normal = [token for token in tokens if token not in special + BYTES]
        merges = merges_of_scores(normal, {token: -tokens.index(token) for token in normal})
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True,
                                     fuse_unk=True, unk_token="<unk>"))
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    known = {token.content for token in added}
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in special
         if token not in known] + [token for token in added if token.special])
    tokenizer.add_tokens([token for token in added if not token.special])
    if bos:
        tokenizer.post_processor = template(tokenizer, "<s> $A", "<s>")
    return tokenizer


def template(tokenizer, single, token):
    return processors.TemplateProcessing(
        single=single, special_tokens=[(token, tokenizer.token_to_id(token))])


def unigram_fields():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=620, special_tokens=["<pad>", "</s>", "<unk>"],
                                      unk_token="<unk>", max_piece_length=10, show_progress=False)
    texts = ["".join(c for c in text if ord(c) < 0x250) for text in training_texts()]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = template(tokenizer, "$A </s>", "</s>")
    fields = json.loads(tokenizer.to_str())
    fields["model"]["vocab"] = [[token, round(score, 4)] for token, score in
                                fields["model"]["vocab"]]
    return fields


def sentence_piece_decoder(strip):
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strip else []))


def legacy_normalizer():
    return normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])


def special_rule(content, **rules):
    return AddedToken(content, special=True, **{"normalized": False, **rules})


def byte_level_kinds():
    tekken = json.loads(byte_level(base.split_by(TEKKEN_REGEX), BASIC).to_str())
    tekken["model"]["ignore_merges"] = True
    yield "tekken", tekken
    yield "bloom", json.loads(byte_level(base.split_by(BLOOM_REGEX), BASIC + ["<pad>"]).to_str())
    prefix = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), ["</s>"])
    prefix.normalizer = normalizers.NFC()
    prefix.add_special_tokens([special_rule("<mask>", lstrip=True, normalized=True)])
    prefix.post_processor = template(prefix, "</s> $A", "</s>")
    yield "prefix", json.loads(prefix.to_str())


def character_kinds():
    yield "llama2", characters(
        added=[special_rule(token, normalized=True) for token in BASIC],
        normalizer=legacy_normalizer(), decoder=sentence_piece_decoder(True))
    yield "mistral", characters(
        ["[INST]", "[/INST]"], pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first",
                                                                      split=False),
        decoder=sentence_piece_decoder(True))
    yield "gemma", characters(
        ["<start_of_turn>", "<end_of_turn>"], by_scores=True,
        added=[AddedToken(token, normalized=False) for token in ("<table>", "\n\n\n")],
        normalizer=normalizers.Replace(" ", SPACE),
        pre_tokenizer=pre_tokenizers.Split(" ", "merged_with_previous"),
        decoder=sentence_piece_decoder(False))
    yield "phi3", characters(
        ["<|user|>", "<|end|>"], bos=False,
        added=[special_rule("</s>", rstrip=True), special_rule("<|user|>", rstrip=True),
               special_rule("<|end|>", rstrip=True, single_word=True),
               AddedToken("<mask>", normalized=False, lstrip=True),
               AddedToken("<word>", normalized=False, single_word=True)],
        normalizer=legacy_normalizer(), decoder=sentence_piece_decoder(True))


def unigram_kinds():
    fields = unigram_fields()
    yield "unigram", fields
    xlnet = json.loads(json.dumps(fields))
    xlnet["normalizer"] = json.loads(
        '{"type":"Sequence","normalizers":[{"type":"Replace","pattern":{"String":"``"},"content":"\\""},'
        '{"type":"NFKD"},{"type":"StripAccents"},{"type":"Lowercase"},'
        '{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}]}')
    xlnet["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"}, xlnet["pre_tokenizer"]]}
    yield "xlnet", xlnet
    whole = json.loads(json.dumps(fields))  # one pre-token, and bytes for what is unknown
    whole["pre_tokenizer"].update(split=False, prepend_scheme="first")
    whole["model"]["byte_fallback"] = True
    whole["model"]["vocab"] += [[token, -30.0] for token in BYTES]
    whole["decoder"] = json.loads(sentence_piece_decoder(True).__getstate__())
    yield "whole", whole


def more_strings(known):
    generator = base.Generator(77)
    saved = base.SPECIAL[:]
    base.SPECIAL[:] = SPECIAL * 2 + saved
    strings = SPECIAL + [generator.mixed(2, 6) for _ in range(900)]
    base.SPECIAL[:] = saved
    known = set(known)
    return [string for string in dict.fromkeys(strings) if string not in known and "<0x" not in string]


def pairs(strings):
    state = 1
    chosen = []
    for _ in range(PAIRS):
        parts = []
        for _ in range(2):
            state = (state * 1103515245 + 12345) % 2**31
            parts.append(strings[state // 256 % len(strings)])
        chosen.append("".join(parts))
    return chosen


def as_in_unicode_14(fields, string):
    text = json.dumps(fields["normalizer"])
    if '"NFC"' in text:
        return normalizers.NFC().normalize_str(string) == unicodedata.normalize("NFC", string)
    if '"NFKD"' in text:
        plain = unicodedata.normalize("NFKD", string)
        bare = "".join(c for c in plain if unicodedata.category(c)[0] != "M")
        theirs = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents()])
        lower = "".join(c.lower() for c in bare)
        return (theirs.normalize_str(string) == bare
                and normalizers.Lowercase().normalize_str(bare) == lower)
    return True


def hash_of(text):
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return (value ^ value >> 12 ^ value >> 24) & 0xFFF


def gemma3_fields(path):
    from transformers import AutoTokenizer
    loaded = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    return json.loads(loaded.backend_tokenizer.to_str())


def write_hashes(name, fields, strings):
    tokenizer = Tokenizer.from_str(json.dumps(fields))
    special = {token["id"] for token in fields["added_tokens"] if token["special"]}
    hashes = []
    for string in strings:
        if not as_in_unicode_14(fields, string) or (name == "gemma3" and SPACE * 2 in string):
            hashes.append("---")
            continue
        ids = tokenizer.encode(string).ids
        text = tokenizer.decode([index for index in ids if index not in special])
        hashes.append(f"{hash_of(' '.join(map(str, ids)) + chr(10) + text):03x}")
    lines = ["".join(hashes[i:i + 32]) for i in range(0, len(hashes), 32)]
    (DATA / f"{name}.hashes").write_text("\n".join(lines) + "\n", encoding="ascii")
    print(name, len(hashes), "strings,", hashes.count("---"), "left out")


def main():
    DATA.mkdir(exist_ok=True)
    corpus = [json.loads(line) for line in
              (base.DATA / "corpus.jsonl").read_text(encoding="utf-8").split("\n") if line]
    more = more_strings(corpus)
    with (DATA / "more.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(string, ensure_ascii=False) + "\n" for string in more)
    strings = corpus + more
    strings += pairs(strings)

    if "--train" in sys.argv:
        for name, made in list(byte_level_kinds()) + list(character_kinds()) + list(unigram_kinds()):
            fields = json.loads(made.to_str()) if isinstance(made, Tokenizer) else made
            text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
            (DATA / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    for name in base.FAMILIES:
        fields = json.loads((base.DATA / f"{name}.json").read_text(encoding="utf-8"))
        write_hashes(name, fields, strings)
    for path in sorted(DATA.glob("*.json")):
        write_hashes(path.stem, json.loads(path.read_text(encoding="utf-8")), strings)
    if "--gemma3" in sys.argv:
        path = pathlib.Path(sys.argv[sys.argv.index("--gemma3") + 1])
        write_hashes("gemma3", gemma3_fields(path), strings)


if __name__ == "__main__":
    main()
