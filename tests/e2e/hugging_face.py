"""Folders of Hugging Face's for the end-to-end tests, made and read without its libraries."""

import json
import random
import struct

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "vocab_size": 256, "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
    "tie_word_embeddings": False, "torch_dtype": "float32", "use_cache": True,
}


def llama_tensors():
    """name -> shape, as LlamaForCausalLM has them."""
    tensors = {"model.embed_tokens.weight": [256, 32], "model.norm.weight": [32],
               "lm_head.weight": [256, 32]}
    for layer in range(2):
        of_layer = {"input_layernorm": [32], "post_attention_layernorm": [32],
                    "self_attn.q_proj": [32, 32], "self_attn.k_proj": [16, 32],
                    "self_attn.v_proj": [16, 32], "self_attn.o_proj": [32, 32],
                    "mlp.gate_proj": [48, 32], "mlp.up_proj": [48, 32], "mlp.down_proj": [32, 48]}
        for name, shape in of_layer.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = shape
    return tensors


def write_safetensors(path, tensors):
    """name -> (shape, bytes of fp32)."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(folder):
    """name -> (dtype, shape, bytes), of all files in a folder."""
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        content = path.read_bytes()
        size = struct.unpack_from("<Q", content)[0]
        for name, entry in json.loads(content[8:8 + size]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = (entry["dtype"], entry["shape"], content[begin:end])
    return tensors


def make_llama(folder, seed=3):
    """Its tensors as read_safetensors() gives them."""
    folder.mkdir()
    source = random.Random(seed)
    tensors = {}
    for name, shape in llama_tensors().items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        middle = 1.0 if "norm" in name else 0.0
        values = [source.gauss(middle, 0.05) for _ in range(count)]
        tensors[name] = (shape, struct.pack(f"<{count}f", *values))
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(LLAMA, indent=2))
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    return {name: ("F32", shape, values) for name, (shape, values) in tensors.items()}
