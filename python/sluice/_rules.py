"""The optimizers by name, each with the arguments that torch's has."""

from sluice._error import Error
from sluice._optimizer import OnDrives


class AdamW(OnDrives):
    """torch.optim.AdamW; `state` and what follows: OnDrives."""

    RULE = "adamw"
    ARRAYS = ("exp_avg", "exp_avg_sq")

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, *, state,
                 platform=None, **settings):
        defaults = {"lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults, state=state, platform=platform, **settings)

    @staticmethod
    def settings_of(group):
        beta1, beta2 = group["betas"]
        return {"beta1": beta1, "beta2": beta2, "eps": group["eps"]}


class SGD(OnDrives):
    """torch.optim.SGD with a momentum buffer, also where `momentum` is 0; no dampening, no
    Nesterov momentum. `state` and what follows: OnDrives."""

    RULE = "sgd"
    ARRAYS = ("momentum_buffer",)

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
                 state, platform=None, **settings):
        if dampening != 0 or nesterov:
            raise Error(f"dampening={dampening}, nesterov={nesterov}: sluice.SGD has neither")
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(params, defaults, state=state, platform=platform, **settings)

    @staticmethod
    def settings_of(group):
        return {"momentum": group["momentum"]}


class Adagrad(OnDrives):
    """torch.optim.Adagrad, whose rate does not decay and whose sums begin at 0. `state` and what
    follows: OnDrives."""

    RULE = "adagrad"
    ARRAYS = ("sum_sq",)

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0,
                 eps=1e-10, *, state, platform=None, **settings):
        if lr_decay != 0 or initial_accumulator_value != 0:
            raise Error(f"lr_decay={lr_decay}, "
                        f"initial_accumulator_value={initial_accumulator_value}: sluice.Adagrad "
                        "has neither; a scheduler lowers the rate")
        defaults = {"lr": lr, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults, state=state, platform=platform, **settings)

    @staticmethod
    def settings_of(group):
        return {"eps": group["eps"]}
