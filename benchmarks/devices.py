"""Training steps through ``compile(device="jax")`` beside plain ``jax.jit`` of the same network, interleaved, fastest of each.

    python benchmarks/devices.py [lenet] [gpt] [resnet]

The plain steps are written as users of JAX write them: ``jax.value_and_grad`` of a loss over a dict of parameters, one jitted
function with donated parameters and states. Both start from the same weights; the losses of the first step are compared.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import extensor as et

REPEATS, SECONDS = 30, 30.0  # of the measurement of one network, whichever ends first


def linear(p: dict[str, Any], name: str, x: Any) -> Any:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def conv(x: Any, weight: Any, stride: int, padding: int) -> Any:
    return jax.lax.conv_general_dilated(
        x, weight, (stride, stride), [(padding, padding)] * 2, dimension_numbers=("NCHW", "OIHW", "NCHW")
    )


def pool(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def cross_entropy(logits: Any, targets: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], 1).mean()


def lenet_loss(p: dict[str, Any], x: Any, y: Any) -> Any:
    x = pool(jax.nn.relu(conv(x, p["conv1.weight"], 1, 2) + p["conv1.bias"][:, None, None]))
    x = pool(jax.nn.relu(conv(x, p["conv2.weight"], 1, 0) + p["conv2.bias"][:, None, None]))
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(linear(p, "fc2", jax.nn.relu(linear(p, "fc1", x))))
    return cross_entropy(linear(p, "fc3", x), y)


def layer_norm(p: dict[str, Any], name: str, x: Any) -> Any:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def gpt_loss(p: dict[str, Any], tokens: Any, y: Any) -> Any:
    n, t = tokens.shape
    heads, width = 4, p["wte.weight"].shape[1]
    x = p["wte.weight"][tokens] + p["wpe.weight"][:t]
    for i in range(sum(name.endswith("ln_1.weight") for name in p)):
        h = linear(p, f"h.{i}.attn.c_attn", layer_norm(p, f"h.{i}.ln_1", x))
        q, k, v = (a.reshape(n, t, heads, width // heads).swapaxes(1, 2) for a in jnp.split(h, 3, -1))
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(width // heads)
        scores = jnp.where(jnp.tri(t, dtype=bool), scores, -jnp.inf)
        h = (jax.nn.softmax(scores) @ v).swapaxes(1, 2).reshape(n, t, width)
        x = x + linear(p, f"h.{i}.attn.c_proj", h)
        h = jax.nn.gelu(linear(p, f"h.{i}.mlp.c_fc", layer_norm(p, f"h.{i}.ln_2", x)), approximate=False)
        x = x + linear(p, f"h.{i}.mlp.c_proj", h)
    logits = layer_norm(p, "ln_f", x) @ p["wte.weight"].T
    return cross_entropy(logits.reshape(n * t, -1), y.reshape(-1))


def batch_norm(p: dict[str, Any], name: str, x: Any) -> Any:
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    unit = (x - mean) / jnp.sqrt(var + 1e-5)
    return unit * p[f"{name}.weight"][:, None, None] + p[f"{name}.bias"][:, None, None]


def resnet_loss(p: dict[str, Any], x: Any, y: Any) -> Any:
    x = jax.nn.relu(batch_norm(p, "bn1", conv(x, p["conv1.weight"], 1, 1)))
    for stage in (1, 2, 3):
        for block in range(3):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            out = jax.nn.relu(batch_norm(p, f"{name}.bn1", conv(x, p[f"{name}.conv1.weight"], stride, 1)))
            out = batch_norm(p, f"{name}.bn2", conv(out, p[f"{name}.conv2.weight"], 1, 1))
            if stride == 2:
                more = x.shape[1] // 2
                x = jnp.pad(x[:, :, ::2, ::2], ((0, 0), (more, more), (0, 0), (0, 0)))
            x = jax.nn.relu(out + x)
    return cross_entropy(linear(p, "fc", x.mean((2, 3))), y)


def plain_sgd(loss: Callable[..., Any], lr: float, momentum: float) -> Any:
    def step(p: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x, y)
        state = jax.tree.map(lambda s, g: momentum * s + g, state, grads)
        return jax.tree.map(lambda w, s: w - lr * s, p, state), state, value

    return jax.jit(step, donate_argnums=(0, 1)), lambda p: jax.tree.map(jnp.zeros_like, p)


def plain_adamw(loss: Callable[..., Any], lr: float) -> Any:
    def step(p: Any, state: Any, x: Any, y: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(p, x, y)
        count, first, second = state
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)

        def moved(w: Any, m: Any, v: Any) -> Any:
            spread = jnp.sqrt(v / (1 - 0.999**count)) + 1e-8
            return w * (1 - lr * 0.01) - lr * (m / (1 - 0.9**count)) / spread

        return jax.tree.map(moved, p, first, second), (count, first, second), value

    return jax.jit(step, donate_argnums=(0, 1)), lambda p: (
        jnp.zeros((), jnp.float32), jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p),
    )  # fmt: skip


def case(name: str) -> tuple[Any, Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    if name == "gpt":
        model = et.models.GPT(65, 64, n_layer=4, n_head=4, n_embd=128, rng=0)
        x, y = rng.integers(0, 65, (16, 64)), rng.integers(0, 65, (16, 64))
        return model, et.optim.AdamW(model.parameters(), lr=1e-3), plain_adamw(gpt_loss, 1e-3), x, y
    if name == "lenet":
        model, shape, loss = et.models.LeNet5(rng=0), (64, 1, 28, 28), lenet_loss
    else:
        model, shape, loss = et.models.ResNet20(rng=0), (32, 3, 32, 32), resnet_loss
    x, y = rng.normal(size=shape).astype(np.float32), rng.integers(0, 10, shape[0])
    return model, et.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), plain_sgd(loss, 0.01, 0.9), x, y


def main() -> None:
    for name in sys.argv[1:] or ("lenet", "gpt", "resnet"):
        model, optimizer, (plain, start), x, y = case(name)
        params = {key: jnp.array(p.numpy()) for key, p in model.named_parameters()}
        state = start(params)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            out = model(x)
            loss = et.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
            loss.backward()
            optimizer.step()
            return loss

        ours = et.compile(step, device="jax")
        a, b, c, d = et.asarray(x), et.asarray(y), jnp.asarray(x), jnp.asarray(y)
        first = ours(a, b).item()
        ours(a, b).item()
        params, state, value = plain(params, state, c, d)
        print(f"{name}: first loss {first:.6f} (ours), {float(value):.6f} (plain)", flush=True)
        times: list[list[float]] = [[], []]
        end = perf_counter() + SECONDS
        while len(times[0]) < REPEATS and perf_counter() < end:
            started = perf_counter()
            ours(a, b).item()
            times[0].append(perf_counter() - started)
            started = perf_counter()
            params, state, value = plain(params, state, c, d)
            float(value)
            times[1].append(perf_counter() - started)
        fast, slow = (1e3 * min(t) for t in times)
        print(f"{name}: {fast:.2f} ms through compile, {slow:.2f} ms plain jax.jit, ratio {fast / slow:.2f}")


if __name__ == "__main__":
    main()
