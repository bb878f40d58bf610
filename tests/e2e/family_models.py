"""A small model of each family beside NANO_MODEL, a GPT-2, and the settings that it needs."""

LLAMA_MODEL = """\
family = "llama"
layers = 2
hidden = 32
heads = 4
kv_heads = 2
ffn = 48
sequence = 32
vocabulary = 256
"""

BERT_MODEL = """\
family = "bert"
masked_head = true
layers = 2
hidden = 32
heads = 4
sequence = 32
vocabulary = 300
dropout = 0.1
attention_dropout = 0.2
"""

T5_MODEL = """\
family = "t5"
layers = 3
encoder_layers = 1
hidden = 32
heads = 4
head_dim = 10
dropout = 0.1
ffn = 48
sequence = 32
vocabulary = 300
"""

FAMILIES = {
    "llama": (LLAMA_MODEL, {}),
    "bert": (BERT_MODEL, {"mask_token": 256}),
    "t5": (T5_MODEL, {"sentinel_token": 299}),
}
