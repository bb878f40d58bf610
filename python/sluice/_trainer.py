"""The optimizer as Hugging Face's Trainer makes it."""

from sluice._optimizer import AdamW


def for_trainer(args, **keywords):
    """`Trainer(..., optimizer_cls_and_kwargs=sluice.for_trainer(args, state="/nvme0/run"))`: lr,
    betas and eps of its TrainingArguments, which Trainer does not hand on by itself. Trainer makes
    the groups, with their weight decay."""
    return AdamW, {"lr": args.learning_rate, "betas": (args.adam_beta1, args.adam_beta2),
                   "eps": args.adam_epsilon, **keywords}
