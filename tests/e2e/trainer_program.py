"""A program with Hugging Face's Trainer, for python_trainer_test.py: PACKAGE torch|sluice FOLDER
[STEP, after whose save it kills itself]."""

import importlib.util
import os
import pathlib
import signal
import sys

package, kind, folder, stop = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, package)

import sluice  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

torch.set_num_threads(1)
has_tensorboard = importlib.util.find_spec("tensorboard") is not None
os.environ["TENSORBOARD_LOGGING_DIR"] = str(folder / "events")
torch.manual_seed(3)
model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32))
tokens = torch.randint(0, 64, (64, 16)).unbind()
args = transformers.TrainingArguments(
    output_dir=str(folder / "trainer"), max_steps=18, use_cpu=True, per_device_train_batch_size=4,
    gradient_accumulation_steps=2, learning_rate=2e-3, warmup_steps=4, lr_scheduler_type="cosine",
    weight_decay=0.1, max_grad_norm=0.5, logging_steps=1, save_steps=5, save_total_limit=2,
    report_to=["tensorboard"] if has_tensorboard else [], disable_tqdm=True)
newest = sluice.last_checkpoint(args.output_dir)
keywords = {}
if kind == "sluice":
    keywords["optimizer_cls_and_kwargs"] = sluice.for_trainer(args, state=folder / "run",
                                                              fresh=newest is None)
trainer = transformers.Trainer(
    model=model, args=args, train_dataset=[{"input_ids": t, "labels": t} for t in tokens],
    **keywords)
if kind == "sluice":
    sluice.attach(trainer)


class Kill(transformers.TrainerCallback):
    def on_save(self, args, state, control, **others):
        if state.global_step == stop:
            os.kill(os.getpid(), signal.SIGKILL)


trainer.add_callback(Kill())
if newest is not None and newest.endswith(f"-{args.max_steps}"):
    # Trainer itself, with torch's optimizer too, would take one step more.
    model = type(model).from_pretrained(newest)
else:
    trainer.train(resume_from_checkpoint=newest)
for entry in trainer.state.log_history:
    if "grad_norm" in entry:
        print("step", entry["loss"], entry["grad_norm"], entry["learning_rate"])
torch.save(model.state_dict(), folder / "weights.pt")
