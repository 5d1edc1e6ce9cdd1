"""Loading a tiny model's folder whole, or refusing it with the file's name and what would do."""

import io
import json
import logging
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, pre_tokenizers, processors, trainers
from tokenizers import models as token_models

from longroute.cli.main import main
from longroute.diagnose import load_causal_lm as loading
from longroute.diagnose.causal_lm import CausalLM
from longroute.diagnose.load_causal_lm import load_causal_lm
from longroute.errors import InputError

transformers = pytest.importorskip("transformers")

TEXT = "The cat sat on the mat, and the dog – a naïve one – ran.\n"
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}

pytestmark = pytest.mark.usefixtures("one_thread")


def byte_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(token_models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=270, initial_alphabet=alphabet, special_tokens=["<s>"], show_progress=False
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def save_model(folder: Path, config: Any, **options: Any) -> None:
    torch.manual_seed(0)
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder, **options)
    if bars:
        transformers.utils.logging.enable_progress_bar()


@pytest.fixture(scope="module", autouse=True)
def no_network():
    """Every attempt to connect fails, and is remembered."""
    attempts: list[Any] = []

    def refuse(_: socket.socket, address: Any) -> None:
        attempts.append(address)
        raise OSError("no network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        yield
    assert attempts == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "tiny-llama"
    tokenizer = byte_tokenizer()
    save_model(folder, transformers.LlamaConfig(vocab_size=tokenizer.get_vocab_size(), **SIZES))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", model_max_length=8)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return shutil.copytree(saved, tmp_path / saved.name)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What transformers logs, wherever it would go."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    logging.getLogger("transformers").addHandler(handler)
    yield text
    logging.getLogger("transformers").removeHandler(handler)


def load(path: Path, **options: Any) -> CausalLM:
    return load_causal_lm(path, device=torch.device("cpu"), **options)


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, metadata={"format": "pt"})


def test_a_folder_loads_as_it_was_saved_in_silence(saved, capfd):
    verbosity = transformers.utils.logging.get_verbosity()
    model = load(saved)
    assert (model.anatomy.name, model.anatomy.kind, model.anatomy.untraced) == ("tiny-llama", "llama", None)
    stored = load_file(saved / "model.safetensors")
    assert all(torch.equal(stored[name], weight) for name, weight in model.model.named_parameters())
    assert transformers.utils.logging.get_verbosity() == verbosity
    assert load(saved, train_length=16, dtype=torch.bfloat16).anatomy.train_length == 16
    assert capfd.readouterr() == ("", "")


def test_without_transformers_everything_imports_and_loading_says_what_to_install(saved):
    code = f"""
import sys
sys.modules["transformers"] = None
from longroute.diagnose.load_causal_lm import load_causal_lm
load_causal_lm({str(saved)!r}, device=None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("transformers 5 or later: pip install 'longroute[transformers]'\n")


def test_text_is_encoded_without_special_tokens_however_long(saved, log):
    model = load(saved)
    ids = model.encode(TEXT * 300)
    assert ids.dtype == torch.int64
    assert ids.tolist() == byte_tokenizer().encode(TEXT * 300, add_special_tokens=False).ids
    assert model.encode("").shape == (0,)
    assert log.getvalue() == ""


def test_a_tokenizer_may_come_from_another_folder(folder, tmp_path):
    other = tmp_path / "tokens"
    other.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).rename(other / name)
    with pytest.raises(InputError, match=r"tiny-llama: no tokenizer .* --tokenizer FOLDER"):
        load(folder)
    assert load(folder, tokenizer=other).encode("cat").numel() > 0
    with pytest.raises(InputError, match="elsewhere: no such folder"):
        load(folder, tokenizer=tmp_path / "elsewhere")


def test_shards_load_and_each_must_be_there_and_whole(folder):
    (folder / "model.safetensors").unlink()
    save_model(folder, transformers.LlamaConfig.from_pretrained(folder), max_shard_size="30KB")
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    assert load(folder).anatomy.untraced is None
    whole = shards[1].read_bytes()
    shards[1].write_bytes(whole[:-100])
    with pytest.raises(InputError, match=f"{shards[1].name}: broken or cut short"):
        load(folder)
    shards[1].unlink()
    with pytest.raises(InputError, match=f"{shards[1].name}: missing"):
        load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "lama"}, r"config.json: .* no model_type 'lama'; did you mean 'llama'\?"),
        ({"model_type": None}, r"config.json: no model_type"),
        ({"model_type": "t5"}, r"tiny-llama: t5 isn't a causal language model"),
        ({"num_hidden_layers": 3}, r"tiny-llama: the weights lack model.layers.2.* and 8 more"),
        ({"intermediate_size": 65}, r"mlp.* is \(.*64.*\), but config.json makes it \(.*65.*\)"),
        ({"vocab_size": 100}, r"tokenizer has 270 tokens, but the embedding of tiny-llama only 100 rows"),
        ({"max_position_embeddings": None}, r"tiny-llama: .* configuration: .*max_position_embeddings.*NoneType"),
        ({"num_attention_heads": 5}, r"tiny-llama: .* configuration: .*not a multiple"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(folder, changes, message):
    change_config(folder, **changes)
    with pytest.raises(InputError, match=message):
        load(folder)


@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_configuration_that_is_none_is_refused(folder, content):
    (folder / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=r"config\.json: "):
        load(folder)


def test_a_path_without_a_model_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match="nowhere: no such folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"neither a folder nor a \.gguf file"):
        load(folder / "tokenizer.json")
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"tiny-llama: no config\.json"):
        load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"tiny-llama: no config\.json"):
        load(folder)


def test_pickled_weights_are_refused_and_no_weights_too(folder):
    weights = folder / "model.safetensors"
    weights.rename(folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"tiny-llama: .*pickled.* convert them to safetensors"):
        load(folder)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(InputError, match=r"tiny-llama: no weights \(model\.safetensors"):
        load(folder)
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(InputError, match="not an index"):
        load(folder)


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_weights_that_are_not_finite_are_refused(folder, value):
    change_weights(folder, lambda weights: weights["model.layers.1.mlp.up_proj.weight"][3, 5].fill_(value))
    with pytest.raises(InputError, match=r"tiny-llama: model\.layers\.1\.mlp\.up_proj\.weight isn't finite"):
        load(folder)


def test_a_weight_that_is_missing_is_refused_unless_it_is_tied(folder, log):
    change_weights(folder, lambda weights: weights.pop("lm_head.weight"))
    with pytest.raises(InputError, match=r"the weights lack lm_head\.weight"):
        load(folder)
    assert log.getvalue() == ""
    change_config(folder, tie_word_embeddings=True)
    assert load(folder).anatomy.untraced is None


@pytest.mark.parametrize("content", ["", "{}", '{"model": {"type": "Unheard"}}'])
def test_a_broken_tokenizer_is_refused(folder, content):
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(InputError, match=r"tiny-llama: .*tokenizer"):
        load(folder)


def test_gguf_files_are_looked_at_before_they_are_read(tmp_path, monkeypatch):
    (tmp_path / "a.gguf").write_bytes(b"PK\x03\x04")
    for path in (tmp_path, tmp_path / "a.gguf"):
        with pytest.raises(InputError, match=r"a\.gguf: not a GGUF file"):
            load(path)
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(loading.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"a\.gguf: .*pip install gguf accelerate"):
        load(tmp_path)
    (tmp_path / "b.gguf").write_bytes(b"GGUF")
    with pytest.raises(InputError, match=r"which of a\.gguf, b\.gguf"):
        load(tmp_path)


def test_a_gguf_file_gives_the_same_losses_as_its_folder(saved, tmp_path):
    pytest.importorskip("accelerate")
    path = tmp_path / "tiny.gguf"
    write_gguf(path, saved, pytest.importorskip("gguf"))
    original, model = load(saved), load(path)
    assert (model.anatomy.name, model.anatomy.untraced, model.anatomy.train_length) == ("tiny", None, 64)
    ids = original.encode(TEXT)
    assert torch.equal(model.encode(TEXT), ids)
    windows = ids[None, :-1], ids[None, 1:]
    torch.testing.assert_close(model.losses(*windows), original.losses(*windows))
    with pytest.raises(InputError, match=r"tiny: the text has '<\|endoftext\|>' \(token 270\)"):
        model.encode("cat<|endoftext|>")  # not in the file: transformers adds it
    assert load(tmp_path, tokenizer=saved).anatomy.name == tmp_path.name
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(InputError, match=r"tiny\.gguf: transformers can't load"):
        load(path)


def write_gguf(path: Path, saved: Path, gguf: Any) -> None:
    """The saved Llama as llama.cpp has it, with its tokenizer."""
    model = transformers.AutoModelForCausalLM.from_pretrained(saved)
    config, tokenizer = model.config, json.loads((saved / "tokenizer.json").read_text())
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([gguf.TokenType.NORMAL] * len(vocabulary))
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(0)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        rows = {"q_proj": heads, "k_proj": kv_heads}.get(name.split(".")[-2])
        if rows is not None:  # llama.cpp rotates neighbouring dimensions
            weight = weight.unflatten(0, (rows, 2, -1)).transpose(1, 2).flatten(0, 2)
        writer.add_tensor(names.get_name(name, (".weight",)), weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_the_whole_command_on_a_model_of_another_library(folder: Path, tmp_path: Path):
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 100, "utf-8")
    out = tmp_path / "out"
    command = ["diagnose", str(folder), "--text", str(text), "--train-length", "16", "--out", str(out)]
    assert main([*command, "--lengths", "8", "16", "32", "64", "128", "--spans", "2"]) == 0
    result = json.loads((out / "diagnosis.json").read_text("utf-8"))
    assert result["model"]["kind"] == "llama"
    assert result["heads"]["16"]["recomputed_within"] < 1e-5
    assert result["prediction"]["ratio"].keys() >= {"16", "32", "64", "128"}
    assert result["transports"][0]["mixing_window"][0][0] is None  # rotations by position never mix
    assert (out / "diagnosis.html").exists()
