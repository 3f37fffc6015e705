/* SPDX-License-Identifier: MIT
 * What the command line said: one struct for all commands, filled by args.c from the rows of table.c. */
#ifndef RUNG_TOOLS_OPTIONS_H
#define RUNG_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_MOST_ITEMS = 256 }; /* of a flag that may be repeated, and of a list "N,N" */

/* Texts of a repeated flag. For prompts, `letter` tells what each one is: p text, f file, i file of ids. */
typedef struct cli_texts {
  const char *item[CLI_MOST_ITEMS];
  char letter[CLI_MOST_ITEMS];
  int count;
} cli_texts;

typedef struct cli_counts {
  int64_t item[CLI_MOST_ITEMS];
  int count;
} cli_counts;

/* Choices, in the order of the values that their rows name. */
enum { CLI_KV_F16, CLI_KV_F32, CLI_KV_BF16, CLI_KV_Q8_0 };
enum { CLI_QUANT_FAST, CLI_QUANT_EXACT };
enum { CLI_PRECISION_F32, CLI_PRECISION_F16, CLI_PRECISION_BF16, CLI_PRECISION_MIXED, CLI_PRECISION_MIXED_F16 };
enum { CLI_POOL_MODEL, CLI_POOL_MEAN, CLI_POOL_CLS, CLI_POOL_LAST, CLI_POOL_MAX };
enum { CLI_BOUND_BALANCED, CLI_BOUND_LATENCY, CLI_BOUND_ACCURATE };
enum { CLI_TARGET_NATIVE, CLI_TARGET_BASE, CLI_TARGET_AVX2, CLI_TARGET_AVX512, CLI_TARGET_NEON };
enum { CLI_DEVICE_CPU, CLI_DEVICE_REF, CLI_DEVICE_CUDA };

typedef struct cli_options {
  const char *model, *weights, *output, *trace, *prefix, *system;
  const char *store, *action;
  cli_texts prompts, stops, inputs, bindings, dry_breakers, biases;
  cli_counts prompt_sizes, sequences;
  int64_t predict, depth, context, keep, ubatch, threads, seed, top_k, repeat, dims;
  int64_t repeat_last_n, dry_allowed_length, dry_last_n, logprobs;
  double temperature, top_p, min_p, typical_p, top_n_sigma, xtc_probability, xtc_threshold;
  double repeat_penalty, presence_penalty, frequency_penalty, dry_multiplier, dry_base;
  uint64_t memory, most;
  int target, kv, quant, device, precision, pool, bound;
  bool chat, ignore_eos, no_map, deterministic, json, verbose, quiet, help, version;
  bool decode, no_special, no_bos, no_normalize, truncate;
  bool pack, svg, source, again;
  bool graph, plan, memory_report, kernels, fused, check, profile;
} cli_options;

#endif
