"""Networks of torchvision and transformers, by torch.export and by ONNX, against torch in float64.

Configurations are small and weights are random from a seed, so there are no downloads. The error
bound is four times the error of torch's own float32 network on the same device, and a few
roundings.
"""

import importlib

import numpy as np
import pytest

import gputensor as gt

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("cuda")]


def library(name):
    try:
        return importlib.import_module(name)
    except Exception as error:  # a broken installation counts as a missing one
        pytest.skip(f"needs {name}: {error}")


torch = None


@pytest.fixture(autouse=True)
def need_torch(cuda):
    global torch
    torch = library("torch")
    torch.set_num_threads(1)  # other test processes run at the same time
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def seeded(make):
    torch.manual_seed(0)
    return make().eval()


def pixels(n=2, size=64):
    return torch.randn(n, 3, size, size, generator=torch.Generator().manual_seed(1))


def tokens(length=12, most=100):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, most, (2, length), generator=generator)


class Plain:
    """Wraps a transformers model in a module that returns one tensor."""

    def __new__(cls, model, name="logits"):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, x):
                how = {"use_cache": False} if hasattr(model.config, "use_cache") else {}
                return getattr(self.model(x, **how), name)

        return Module()


def vision(name):
    return lambda: getattr(library("torchvision.models"), name)(weights=None, num_classes=10)


def transformer(config, model, result="logits", **sizes):
    def make():
        package = library("transformers")
        sizes.setdefault("attn_implementation", "sdpa")
        made = getattr(package, config)(**sizes)
        return Plain(getattr(package, model)(made), result)

    return make


DECODER = {
    "vocab_size": 100, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
ENCODER = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
}  # fmt: skip
MODELS = {
    "mobilenet_v2": (vision("mobilenet_v2"), pixels),
    "resnet50": (vision("resnet50"), pixels),
    "vit": (
        transformer("ViTConfig", "ViTForImageClassification", image_size=64, patch_size=16,
                    **ENCODER),
        pixels,
    ),
    "bert": (
        transformer("BertConfig", "BertModel", "last_hidden_state", vocab_size=100, **ENCODER),
        tokens,
    ),
    "llama": (transformer("LlamaConfig", "LlamaForCausalLM", **DECODER), tokens),
    "qwen3": (transformer("Qwen3Config", "Qwen3ForCausalLM", head_dim=16, **DECODER), tokens),
    "whisper encoder": (
        lambda: Plain(whisper().get_encoder(), "last_hidden_state"),
        lambda: torch.randn(2, 80, 100, generator=torch.Generator().manual_seed(1)),
    ),
    "whisper": (
        lambda: Read(whisper(), "input_features", "decoder_input_ids", tokens()),
        lambda: torch.randn(2, 80, 100, generator=torch.Generator().manual_seed(1)),
    ),
    "llava": (lambda: Read(llava(), "pixel_values", "input_ids", words_and_image()), pixels),
}  # fmt: skip
IMAGE_TOKEN = 99


def whisper():
    package = library("transformers")
    config = package.WhisperConfig(
        vocab_size=100, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
        max_source_positions=50, max_target_positions=20, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    return package.WhisperModel(config)


class Read:
    """A module that also reads fixed tokens."""

    def __new__(cls, model, given, named, places):
        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model
                self.register_buffer("places", places)

            def forward(self, x):
                return self.model(**{given: x, named: self.places, "use_cache": False})[0]

        return Module()


def words_and_image():
    rows = tokens(most=IMAGE_TOKEN)
    image = torch.full((2, 16), IMAGE_TOKEN)
    return torch.cat([rows[:, :2], image, rows[:, 2:]], 1)


def llava():
    """A vision-language model: the encoder of CLIP, a projector, and Llama."""
    package = library("transformers")
    config = package.LlavaConfig(
        vision_config=package.CLIPVisionConfig(image_size=64, patch_size=16, **ENCODER),
        text_config=package.LlamaConfig(**DECODER), image_token_index=IMAGE_TOKEN,
    )  # fmt: skip
    return package.LlavaForConditionalGeneration(config)


@pytest.fixture(params=MODELS)
def network(request):
    """(module, input, result in float64, largest error of torch's float32 network)."""
    make, example = MODELS[request.param]
    module, x = seeded(make), example()
    with torch.no_grad():
        narrow = module.cuda()(x.cuda()).double().cpu()
        wide_x = x.double() if x.is_floating_point() else x
        wide = module.cpu().double()(wide_x)
        module = module.float()
    error = float((narrow - wide).abs().max())
    return module, x, wide.numpy(), error


def check(found, wanted, error):
    bound = 4 * error + 1e-6 * np.abs(wanted).max()
    worst = np.abs(found.astype(np.float64) - wanted).max()
    assert worst <= bound, (worst, bound)


def check_model(model, x, wanted, error):
    given = gt.asarray(x.numpy(), device="cuda")
    with gt.blas.precision(allow_tf32=False):
        check(model.run(given).numpy(), wanted, error)
        with model.compile(target="cuda") as program:
            check(program(given).numpy(), wanted, error)


def without_checks(graph):
    """Erase checks and what only they read: torch's ONNX exporter lacks some of their operators."""
    for node in reversed(list(graph.nodes)):
        is_unread = not node.users and not str(node.target).endswith("_.default")
        if node.op == "call_function" and is_unread:
            graph.erase_node(node)


def test_by_torch_export(network):
    module, x, wanted, error = network
    with torch.no_grad():
        exported = torch.export.export(module, (x,))
    check_model(gt.from_exported(exported), x, wanted, error)


def test_by_torch_export_decomposed(network):
    module, x, wanted, error = network
    with torch.no_grad():
        exported = torch.export.export(module, (x,))
        without_checks(exported.graph)  # torch 2.11 cannot decompose those of LLaVA
        exported = exported.run_decompositions()
    check_model(gt.from_exported(exported), x, wanted, error)


def test_by_onnx(network, tmp_path):
    library("onnx")
    library("onnxscript")
    module, x, wanted, error = network
    path = tmp_path / "model.onnx"
    with torch.no_grad():
        exported = torch.export.export(module, (x,))
        without_checks(exported.graph)
        torch.onnx.export(exported, (), str(path), dynamo=True)
    check_model(gt.load_onnx(path), x, wanted, error)


def test_a_free_batch_size():
    module = seeded(vision("mobilenet_v2"))
    n = torch.export.Dim("n", min=2, max=8)
    with torch.no_grad():
        exported = torch.export.export(module, (pixels(4),), dynamic_shapes=({0: n},))
        model = gt.from_exported(exported)
        with model.compile(target="cuda") as program:
            for count in (2, 3, 8):
                x = pixels(count)
                found = program(gt.asarray(x.numpy(), device="cuda")).numpy()
                np.testing.assert_allclose(found, module(x).numpy(), rtol=1e-2, atol=1e-3)
