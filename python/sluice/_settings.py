"""Settings of Sluice's as keywords: `buffers=4` is what `sluice train --set buffers=4` is."""

from sluice._error import Error
from sluice._folders import PLAIN_DRIVES, PLAIN_DRIVES_MOST

# Said elsewhere: a second place would have to agree with it, or count for nothing.
SAID_ELSEWHERE = {
    "max_grad_norm": "clip with torch.nn.utils.clip_grad_norm_ before step()",
    "precision": "the parameters' dtype says it",
    "optimizer": "the class says it",
    "momentum": "SGD(momentum=...) says it",
    "eps": "eps= says it",
    "beta1": "betas=(beta1, beta2) says it",
    "beta2": "betas=(beta1, beta2) says it",
    "output": "state= says it",
    "state_dir": "state= says it",
    "min_lr": "a scheduler of torch.optim.lr_scheduler does it",
    "warmup_steps": "a scheduler of torch.optim.lr_scheduler does it",
    "schedule_steps": "a scheduler of torch.optim.lr_scheduler does it",
}
# Arguments of the constructor, and in param_groups from then on.
SAID_BY_GROUPS = {
    "lr": 'param_groups[...]["lr"] says it, for which a scheduler is',
    "weight_decay": 'param_groups[...]["weight_decay"] says it',
}


def text_of(value):
    """As a setting is written."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(text_of, value))
    return repr(value) if isinstance(value, float) else str(value)


def checked(settings, folders):
    """key -> text, for the keywords that a program gave."""
    for key in settings:
        if key in SAID_ELSEWHERE:
            raise Error(f"{key}={settings[key]!r}: {SAID_ELSEWHERE[key]}")
    if len(folders.places) > 1 and "devices" in settings:
        raise Error(f"devices={settings['devices']!r}: state= names {len(folders.places)} folders, "
                    "one for each")
    return {key: text_of(value) for key, value in settings.items()}


def with_machine(settings, platform, folders):
    """The machine of a platform file, or plain drives, one for each folder."""
    found = dict(settings)
    drives = len(folders.places)
    if drives > 1:
        found["devices"] = str(drives)
    if platform is not None:
        return found | {"platform": str(platform)}
    if drives > PLAIN_DRIVES_MOST:
        raise Error(f"{drives} folders need a platform file: platform=")
    return {"method": "host"} | found | {"platform": str(PLAIN_DRIVES)}
