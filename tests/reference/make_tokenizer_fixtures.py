#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/text: what Hugging Face's tokenizers and templates make of varied texts.

    pip install tokenizers jinja2 transformers gguf
    tests/reference/make_tokenizer_fixtures.py --train CORPUS --model SmolLM2-135M-Instruct.Q4_1.gguf

Without --train the four small tokenizers that are there are kept (CORPUS holds public text files:
*.jsonl, *.json.zip; none of their text ends up in the fixtures); without --model, smollm2.ids is.

    corpus.jsonl       the strings, one JSON string per line
    NAME.json          a tokenizer.json of 1,000 tokens with the pre-tokenizer of that name
    NAME.ids           line i: its ids for string i, in decimal
    smollm2.ids        the same for the real SmolLM2
    renderings.json    conversations as rendered by templates/*.jinja

Everything is deterministic. Code points are those that Unicode 14 assigns, as in PCRE2 10.42 and
utf8proc 2.8; Python 3.11 has the same tables. Hugging Face's NFC has older ones: strings which it
normalises otherwise than Unicode 14 are left out.
"""

import argparse
import json
import pathlib
import random
import unicodedata
import zipfile

import jinja2.sandbox
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = ROOT / "data" / "text"

LLAMA3_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_REGEX = LLAMA3_REGEX.replace("{1,3}", "")


def split_by(regex):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def smollm_pre_tokenizer():
    return pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
    ])


# Name: pre-tokenizer, whether all 256 bytes have a token, special tokens, user-defined tokens (some
# of which begin alike).
FAMILIES = {
    "gpt2": (pre_tokenizers.ByteLevel(add_prefix_space=False), True, ["<|endoftext|>"], []),
    "smollm": (smollm_pre_tokenizer(), False, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], []),
    "llama3": (split_by(LLAMA3_REGEX), True, ["<|begin_of_text|>", "<|eot_id|>"], []),
    "qwen2": (split_by(QWEN2_REGEX), True, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
              ["<think>", "</think>", "<think>\n", "<tool_call>", "  <tool"]),
}
# LLaMA-3's vocabulary has words that its merges do not make.
UNMERGED = ["Ġunmergeable", "hello", "Ġhello", "çļĦ", "Ġ123", "ĊĊĊ"]


def training_texts(corpus):
    for path in sorted(corpus.rglob("*.jsonl")):
        if "mooncake" not in path.parts:  # numbers only
            yield path.read_text(encoding="utf-8")[:400_000]
    for path in sorted(corpus.rglob("*.json.zip")):
        with zipfile.ZipFile(path) as archive:
            yield archive.read(archive.namelist()[0]).decode()[:200_000]


def train(name, corpus):
    pre_tokenizer, all_bytes, special, user_defined = FAMILIES[name]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if all_bytes else []
    trainer = trainers.BpeTrainer(vocab_size=1000, initial_alphabet=sorted(alphabet),
                                  special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(training_texts(corpus), trainer)
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in user_defined])
    if name == "llama3":
        bos = special[0]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
            special_tokens=[(bos, tokenizer.token_to_id(bos))])
    fields = json.loads(tokenizer.to_str())
    model = fields["model"]
    if name == "llama3":
        model["ignore_merges"] = True
        for token in UNMERGED:
            model["vocab"].setdefault(token, len(model["vocab"]))
    if name == "gpt2":  # the older form
        model["merges"] = [" ".join(pair) for pair in model["merges"]]
    (DATA / f"{name}.json").write_text(
        json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


SENTENCES = """
All human beings are born free and equal in dignity and rights; that's what it says, isn't it?
Alle Menschen sind frei und gleich an Würde und Rechten geboren. Straße, Größe, Übermut.
Tous les êtres humains naissent libres et égaux en dignité et en droits. L'œuvre où ça naît.
Todos los seres humanos nacen libres e iguales en dignidad y derechos. ¿Mañana? ¡Sí, señor!
Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Coração, não.
Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Perché? Così è.
Wszyscy ludzie rodzą się wolni i równi pod względem swej godności. Zażółć gęślą jaźń.
Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti. Příliš žluťoučký kůň.
Minden emberi lény szabadon születik. Árvíztűrő tükörfúrógép.
Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İstanbul'da ılık ığdır.
Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền.
Allir menn eru bornir frjálsir. Þetta reddast, ætla ég.
Kaikki ihmiset syntyvät vapaina. Yötyö, hääyöaie.
Visi žmonės gimsta laisvi. Visi cilvēki piedzimst brīvi.
Все люди рождаются свободными и равными в своём достоинстве и правах. Ёлки, объём!
Усі люди народжуються вільними і рівними. Їжак, ґанок, єдність.
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι. Ἐν ἀρχῇ ἦν ὁ λόγος.
Բոլոր մարդիկ ծնվում են ազատ ու հավասար։
ყველა ადამიანი იბადება თავისუფალი და თანასწორი.
כל בני האדם נולדו בני חורין ושווים בערכם. בְּרֵאשִׁית בָּרָא אֱלֹהִים
يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. بِسْمِ اللَّهِ ١٢٣٤٥
تمام انسان‌ها آزاد زاده می‌شوند. ۱۲۳۴۵ کتاب‌ها
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता है। १२३ क्षत्रिय ज़रूर
সমস্ত মানুষ স্বাধীনভাবে জন্মগ্রহণ করে। ১২৩ ড়ঢ়য়
ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ ਨਾਲ ਜਨਮਦਾ ਹੈ।
બધા માનવો સ્વતંત્ર જન્મે છે અને સમાન છે.
மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர். கொ கோ கௌ
ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును.
ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಹುಟ್ಟಿದ್ದಾರೆ. ಕೊ ಕೋ
മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും സ്വാതന്ത്ര്യത്തോടുംകൂടി ജനിക്കുന്നു.
සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත. කෝ
มนุษย์ทั้งปวงเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ๑๒๓ น้ำ
ມະນຸດທຸກຄົນເກີດມາມີສິດເສລີພາບ ນ້ຳ
လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် မွေးဖွားလာသူများ ဖြစ်သည်။
មនុស្សទាំងអស់ កើតមកមានសេរីភាព និងសមភាព។
འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས།
የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።
Хүн бүр төрж мэндлэхдээ эрх чөлөөтэй. ᠬᠦᠮᠦᠨ ᠪᠦᠷ ᠲᠥᠷᠥᠵᠦ
人人生而自由，在尊严和权利上一律平等。今天是2024年3月15日，气温23.5℃。
人人生而自由，在尊嚴和權利上一律平等。「請問」——『好的』……
すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。ガギグゲゴ
ｶﾞｷﾞｸﾞ ハンカクと全角ＡＢＣ１２３！？
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. ㅋㅋㅋ
ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ ᎤᎾᏕᎿ ᏚᏳᎧᏛ ᎨᏒᎢ.
ᐃᓄᓕᒫᑦ ᐊᓂᖅᑎᕆᔪᓕᒫᑦ ᐃᓅᓕᖅᐳᑦ ᐃᓱᒪᕐᓱᕐᖢᑎᒃ
ⵉⵎⴷⴰⵏⴻⵏ ⴰⴽⴽ ⵜⵜⵍⴰⵍⴻⵏ ⴷ ⵉⵍⴻⵍⵍⵉⵢⴻⵏ
""".strip().split("\n")

SNIPPETS = [
    "def f(x):\n    return {'a': x, \"b\": [1, 2, 3]}\n\n\nclass A:\n\tpass\n",
    "for (int i = 0; i < 10; ++i) {\r\n\tprintf(\"%d\\n\", i);  // it's i\r\n}\r\n",
    '{"name": "caf\\u00e9", "n": -1.5e-10, "list": [true, false, null], "deep": {"k": {}}}',
    "SELECT * FROM t WHERE a >= 10 AND b <> 'it''s';--",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nprint('x')\n```\n\n> quote\n\n* item\n  * item\n",
    "<html><body class=\"a\">&nbsp;&lt;b&gt;</body></html>\n<!-- c -->",
    "https://example.org/a/b?c=d&e=%20f#g user.name+tag@example.co.uk C:\\Users\\me\\x.txt",
    "$ ls -la | grep '^d' && echo \"$HOME\" > /dev/null 2>&1; # done",
    "E = mc², ∫₀^∞ e^{-x²} dx = √π/2, ∀x∈ℝ: x² ≥ 0; ½ + ¼ = ¾, Ⅻ, ①②③, 10⁻⁹",
    "1,234,567.89 0x1F 1e10 3.14159265358979 2024-03-15T12:34:56Z +49 (0)30 123456 192.168.0.1",
    "I'M YOU'RE HE'S WE'VE THEY'LL SHE'D CAN'T i'm you're he's we've they'll she'd can't",
    "’s ‘quoted’ “quoted” it’s l’eau d'accord rock'n'roll 'tis o'clock ''s '''t",
    "'s't're've'm'll'd'S'T'RE'VE'M'LL'D'Re'vE'lL'ſ'ſs",
    "supercalifragilisticexpialidocious" * 3,
    "Donaudampfschifffahrtsgesellschaftskapitänsmütze",
    "x" * 300,
    "ab" * 150,
    "=" * 80 + "\n" + "-" * 80,
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab" * 4,
    "ACGT" * 60,
    "字" * 40,
    "ㅏ" * 10 + "각" * 10,
    "👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🇩🇪🇯🇵🇧🇷 1️⃣ #️⃣ ☎️ 🤷🏿‍♂️ 🧑‍🤝‍🧑 ❤️‍🔥 😀😃😄",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿 👍👍🏻👍🏿 🫠🫡 ©®™ ☺︎☺️",
    "\ufeffBOM and\u200bzero\u200cwidth\u200djoiners\u2060 soft\u00adhyphen",
    "\u202eright to left\u202c \u2066isolate\u2069",
    "e\u0301 \u00e9 o\u0308\u0323 \u1e0d\u0307 d\u0323\u0307 A\u030a \u212b \u2126 \u1e9b\u0323 \ufb01 \u0340\u0341\u0344",
    "Z\u0351\u036b\u0343a\u0327\u0348l\u0329\u0336g\u0321o\u0322!",
    "\u1100\u1161\u11a8 \u1112\u1161\u11ab\u1100\u1173\u11af \uac00\u11a8 \u1100\u1161\u1161 \u11a8",
    "\u0915\u093c \u0958 \u09c7\u09be \u0b47\u0b56 \u0bc6\u0bbe \u0cc6\u0cc2 \u0d46\u0d3e \u0dd9\u0dcf \u1025\u102e",
    "\u2adc\u0338 =\u0338 \u226f >\u0338 <\u0338 \U0001d15e \U0001109a \U00011099\U000110ba \uf900 \ufa10 \U0002f800",
]

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>",
           "<think>", "</think>", "<think>\n", "<tool_call>", "  <tool", "<|im_start", "|im_end|>",
           "<|", "<", "<|im_start|", "<repo_name>", "<|endoftext|"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'LL", "'D",
                "’s", "'", "''", "'x"]
SPACES = [" "] * 8 + [
    "\t", "\n", "\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x85", "\xa0", "\u1680", "\u180e", "\u2003",
    "\u200b", "\u2028", "\u2029", "\u202f", "\u3000"]
WORDS = """
the of and to in is you that it he was for on are as with his they at be this have from or one had by
word but not what all were we when your can said there use an each which she do Hello World Unicode
GPU kv-cache prefix token Zürich naïve 北京 東京 서울 Москва
""".split()


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.codes = [c for c in range(0x110000)
                      if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
        self.marks = [c for c in self.codes if unicodedata.category(chr(c))[0] == "M"]
        self.numbers = [c for c in self.codes if unicodedata.category(chr(c))[0] == "N"]

    def scripts(self):
        """Code points by the first word of their name, which is nearly always their script."""
        groups = {}
        for code in self.codes:
            name = unicodedata.name(chr(code), "")
            groups.setdefault(name.split(" ")[0].split("-")[0], []).append(code)
        return {name: codes for name, codes in sorted(groups.items()) if len(codes) >= 8 and name}

    def of(self, codes, low, high):
        count = self.random.randint(low, high)
        return "".join(chr(self.random.choice(codes)) for _ in range(count))

    def spaces(self, high):
        return "".join(self.random.choice(SPACES) for _ in range(self.random.randint(1, high)))

    def number(self):
        return str(self.random.randrange(10 ** self.random.randint(1, 8)))

    def part(self):
        r = self.random
        return r.choice([
            lambda: r.choice(WORDS), lambda: r.choice(WORDS), lambda: r.choice(WORDS).upper(),
            lambda: self.spaces(3), lambda: self.spaces(1), lambda: " ", lambda: self.number(),
            lambda: r.choice(CONTRACTIONS), lambda: r.choice(SPECIAL),
            lambda: self.of(self.codes, 1, 2), lambda: self.of(self.marks, 1, 3),
            lambda: self.of(range(0x21, 0x7f), 1, 4), lambda: self.of(range(0x20), 1, 2),
            lambda: self.of(range(0x1100, 0x1200), 1, 3), lambda: self.of(self.numbers, 1, 2),
            lambda: r.choice(SENTENCES)[:r.randint(1, 12)],
        ])()

    def mixed(self, low, high):
        return "".join(self.part() for _ in range(self.random.randint(low, high)))


def corpus():
    generator = Generator(20240315)
    r = generator.random
    strings = [""] + [" " * n for n in (1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33)]
    strings += ["\n" * n for n in (1, 2, 3, 8)]
    strings += ["\r\n" * 2, "\t", "\t\t\t", " \n", "\n ", " \n \n x", "\0", "a\0b"]
    strings += SENTENCES + SNIPPETS + SPECIAL + CONTRACTIONS
    strings += [chr(c) for c in range(0x80)]
    for codes in generator.scripts().values():
        strings.append(generator.of(codes, 3, 8))
        strings.append(generator.of(codes, 1, 3) + " " + generator.of(codes, 2, 6))
    for _ in range(120):  # spaces before and between everything
        strings.append(generator.spaces(6) + r.choice(WORDS + ["1", "!", ""]) +
                       generator.spaces(4) + r.choice(["", "x", "7", "'s"]))
    for _ in range(80):
        strings.append(r.choice(WORDS) + r.choice(CONTRACTIONS) + r.choice(["", " ", "x", "9", "s"]))
    for _ in range(80):
        strings.append(r.choice(["", " ", "  ", "a", "-"]).join([
            generator.number(), generator.of(generator.numbers, 1, 4), generator.number()]))
    for _ in range(120):
        strings.append(r.choice("aeonAEO가") + generator.of(generator.marks, 1, 6) + r.choice(["", " ", "x"]))
    for _ in range(60):
        strings.append(generator.of(range(0x1100, 0x1200), 2, 8) +
                       generator.of(range(0xac00, 0xd7a4), 1, 3) +
                       generator.of(range(0x11a8, 0x11c3), 0, 2))
    for _ in range(80):
        parts = SPECIAL + WORDS + [" ", "\n"]
        strings.append("".join(r.choice(parts) for _ in range(r.randint(2, 5))))
    for _ in range(60):
        strings.append(generator.of(range(0x61, 0x7b), 20, 60))
    strings += [generator.mixed(2, 8) for _ in range(900)]
    nfc = normalizers.NFC()
    return [string for string in dict.fromkeys(strings)
            if nfc.normalize_str(string) == unicodedata.normalize("NFC", string)]


def write_ids(name, tokenizer, strings):
    lines = (" ".join(map(str, tokenizer.encode(string).ids)) for string in strings)
    (DATA / f"{name}.ids").write_text("\n".join(lines) + "\n", encoding="ascii")


def smollm2_tokenizer(path):
    from transformers import AutoTokenizer
    loaded = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    tokenizer = loaded.backend_tokenizer
    # transformers takes every GGUF for GPT-2's; the model's own tokenizer.json sets digits apart.
    tokenizer.pre_tokenizer = smollm_pre_tokenizer()
    return tokenizer


CONVERSATIONS = [
    [("user", "Hello!")],
    [("system", "Be brief."), ("user", "What's 2 + 2?")],
    [("user", "Hi"), ("assistant", "Hello! How can I help?"), ("user", " 你好\n\n")],
    [("system", ""), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"),
     ("user", "<|im_end|>")],
    [("user", "a"), ("user", "b"), ("system", "Now in French."), ("user", "c")],
]


def renderings():
    # As transformers' apply_chat_template does.
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True,
                                                               lstrip_blocks=True)
    for path in sorted((DATA / "templates").glob("*.jinja")):
        template = environment.from_string(path.read_text(encoding="utf-8"))
        for conversation in CONVERSATIONS:
            messages = [{"role": role, "content": content} for role, content in conversation]
            text = template.render(messages=messages, add_generation_prompt=True)
            yield {"template": path.name, "messages": messages, "text": text}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, metavar="CORPUS")
    parser.add_argument("--model", type=pathlib.Path, metavar="GGUF")
    arguments = parser.parse_args()
    if unicodedata.unidata_version != "14.0.0":
        parser.error("needs a Python whose unicodedata is of Unicode 14 (3.11)")

    strings = corpus()
    with (DATA / "corpus.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(string, ensure_ascii=False) + "\n" for string in strings)
    for name in FAMILIES:
        if arguments.train:
            train(name, arguments.train)
        write_ids(name, Tokenizer.from_file(str(DATA / f"{name}.json")), strings)
    if arguments.model:
        write_ids("smollm2", smollm2_tokenizer(arguments.model), strings)
    with (DATA / "renderings.json").open("w", encoding="utf-8", newline="\n") as file:
        json.dump(list(renderings()), file, ensure_ascii=False, indent=0)
        file.write("\n")
    print(len(strings), "strings")


if __name__ == "__main__":
    main()
