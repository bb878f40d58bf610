"""Trainer with models of transformers, for python_trainer_test.py: PACKAGE FAMILY CASE FOLDER.
Prints for torch's optimizer, and then for sluice.AdamW in several ways, a line `way NAME DIGEST`
with the weights at the end, and `step LOSS NORM` for each of 50 steps."""

import copy
import hashlib
import pathlib
import sys

package, family, case, folder = *sys.argv[1:4], pathlib.Path(sys.argv[4])
sys.path.insert(0, package)

import sluice  # noqa: E402
import torch  # noqa: E402
import transformers as t  # noqa: E402

torch.set_num_threads(1)
torch.manual_seed(1)
STEPS = 50
OF_LLAMA = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
FAMILIES = {
    "llama": lambda: t.LlamaForCausalLM(t.LlamaConfig(**OF_LLAMA)),
    "qwen3": lambda: t.Qwen3ForCausalLM(t.Qwen3Config(**OF_LLAMA, head_dim=16,
                                                      tie_word_embeddings=True)),
    "t5": lambda: t.T5ForConditionalGeneration(t.T5Config(
        vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0,
        decoder_start_token_id=0)),
    "bert": lambda: t.BertForMaskedLM(t.BertConfig(
        vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=32, hidden_dropout_prob=0,
        attention_probs_dropout_prob=0)),
}
CASES = {
    "plain": {},
    "clipped": {"max_grad_norm": 0.5, "gradient_accumulation_steps": 2, "warmup_steps": 10,
                "lr_scheduler_type": "cosine", "weight_decay": 0.1},
    "checkpointing": {"gradient_checkpointing": True, "label_smoothing_factor": 0.1,
                      "gradient_checkpointing_kwargs": {"use_reentrant": False}},
    "lora": {"weight_decay": 0.1},
    "bf16": {"max_grad_norm": 0.0},
}
WAYS = {
    "sluice": {},
    "csd": {"method": "csd", "devices": 2, "platform": None},
    "cached": {"gradient_tier": "memory", "state_cache": "2MB", "commit_every": 7},
    "kept": {"gradients": "keep", "buffers": 1, "subgroup_elements": 4096},
}


def made():
    torch.manual_seed(5)
    model = FAMILIES[family]()
    if case == "lora":
        from peft import LoraConfig, get_peft_model
        torch.manual_seed(6)
        model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear"))
    return model.bfloat16() if case == "bf16" else model


def trainer_of(model, **keywords):
    settings = {"max_grad_norm": 0.0} | CASES[case]
    args = t.TrainingArguments(
        output_dir=str(folder / "trainer"), max_steps=STEPS, use_cpu=True, learning_rate=2e-3,
        per_device_train_batch_size=4, logging_steps=1, save_strategy="no", report_to=[],
        disable_tqdm=True, seed=3, **settings)
    made_by = keywords.pop("by")
    tokens = torch.randint(1, 96, (64, 16), generator=torch.Generator().manual_seed(2)).unbind()
    # Label smoothing takes the labels away from which a T5 makes them.
    decoder = {"decoder_input_ids"} if family == "t5" else set()
    return t.Trainer(model=model, args=args, train_dataset=[
        dict.fromkeys({"input_ids", "labels", *decoder}, one) for one in tokens],
                     **made_by(args, model))


def told(name, trainer, model):
    print("way", name, hashlib.sha256(b"".join(
        p.detach().float().numpy().tobytes() for p in model.parameters())).hexdigest())
    for row in trainer.state.log_history:
        if "grad_norm" in row:
            print("step", row["loss"], row["grad_norm"])


class MasterAdamW(torch.optim.AdamW):
    """torch's on fp32 copies of parameters of 16 bits: what ours is compared with."""

    def __init__(self, params, **keywords):
        groups = list(params)
        masters = [{**group, "params": [p.detach().float() for p in group["params"]]}
                   for group in copy.copy(groups)]
        super().__init__(masters, **keywords)
        self.models = [p for group in groups for p in group["params"]]

    def step(self, closure=None):
        masters = [p for group in self.param_groups for p in group["params"]]
        for master, parameter in zip(masters, self.models):
            master.grad = parameter.grad.float()
        super().step()
        with torch.no_grad():
            for master, parameter in zip(masters, self.models):
                parameter.copy_(master)

    def zero_grad(self, set_to_none=True):
        for parameter in self.models:
            parameter.grad = None


def torchs(args, model):
    if case != "bf16":
        return {}
    return {"optimizer_cls_and_kwargs": (MasterAdamW, {"lr": args.learning_rate})}


def ours(name):
    settings = {k: v for k, v in WAYS[name].items() if v is not None}
    if WAYS[name].get("method") == "csd":
        settings["platform"] = sys.argv[5]
    return lambda args, model: {"optimizer_cls_and_kwargs": sluice.for_trainer(
        args, state=folder / name, threads=1, **settings)}


model = made()
trainer = trainer_of(model, by=torchs)
trainer.train()
told("torch", trainer, model)
for way in WAYS:
    model = made()
    trainer = trainer_of(model, by=ours(way))
    trainer.train()
    told(way, trainer, model)
    trainer.optimizer = None
