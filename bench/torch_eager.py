#!/usr/bin/env python3
"""The same sparse attention step in eager PyTorch: gather the rows, two batched products.

The peer of `dsattn bench` for forward and backward at H=64, D=576, Dv=512, K=512, Sq=256,
Skv=4096, bf16. Prints one JSON object. Needs `pip install torch`; run on an idle machine.
"""
import argparse
import json
import statistics
import time

import torch


def step(q, kv, ids, dout, scale, d_v):
    """Forward and backward; returns the seconds of each."""
    start = time.perf_counter()
    rows = kv[ids]  # [Sq, K, D]
    scores = torch.matmul(q, rows.transpose(1, 2)).float() * scale  # [Sq, H, K]
    weights = torch.softmax(scores, dim=-1).to(q.dtype)
    out = torch.matmul(weights, rows[..., :d_v])
    middle = time.perf_counter()
    torch.autograd.grad(out, (q, kv), dout)
    return middle - start, time.perf_counter() - middle


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    sq, skv, heads, d, d_v, k = 256, 4096, 64, 576, 512, 512
    q = torch.randn(sq, heads, d).bfloat16().requires_grad_()
    kv = torch.randn(skv, d).bfloat16().requires_grad_()
    dout = torch.randn(sq, heads, d_v).bfloat16()
    ids = torch.stack([torch.randperm(skv)[:k].sort().values for _ in range(sq)])
    times = [step(q, kv, ids, dout, d**-0.5, d_v) for _ in range(args.repeats + 1)][1:]
    flops = (2 * sq * heads * k * (d + d_v), 2 * sq * heads * k * (2 * d + 2 * d_v))
    report = {"torch": torch.__version__, "threads": args.threads, "repeats": args.repeats,
              "shape": {"Sq": sq, "Skv": skv, "H": heads, "D": d, "Dv": d_v, "K": k}}
    # Autograd keeps the weights, so its backward does less work than ours, which recomputes them.
    for name, at, work in (("forward", 0, flops[0]), ("backward", 1, flops[1])):
        seconds = [pair[at] for pair in times]
        report[name] = {"median_s": statistics.median(seconds), "min_s": min(seconds),
                        "max_s": max(seconds), "gflops": work / statistics.median(seconds) / 1e9}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
