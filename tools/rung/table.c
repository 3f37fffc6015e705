/* SPDX-License-Identifier: MIT
 * Commands, flags and variables: data only, so that the generator of man pages can include this file. */
#include "table.h"

const cli_command cli_commands[CLI_COMMANDS] = {
    [CLI_GENERATE] =
        {"generate", "continues text with a language model",
         "Reads the prompt and streams what the model makes of it. Special tokens spelled out in the prompt are\n"
         "read as such. Several prompts are run side by side as one batch and printed one after the other at the\n"
         "end.",
         "rung generate -m model.gguf -p \"The capital of France is\" -n 32 --temp 0\n"
         "rung generate -m model.gguf -f question.txt -n 200 -s 7 --json\n"
         "rung generate -m model.gguf --chat --system \"You answer briefly.\" -p \"What is a quine?\""},
    [CLI_TOKENIZE] =
        {"tokenize", "turns text on standard input into ids, or back",
         "Reads text and prints its ids on one line, separated by blanks. With --decode it reads ids and prints\n"
         "text.",
         "printf 'Hello world' | rung tokenize -m model.gguf\n"
         "echo 19556 905 | rung tokenize -m model.gguf --decode"},
    [CLI_LOGITS] =
        {"logits", "writes the logits of every position to a .npy file",
         "Runs the model over one prompt and writes an array of float32 [positions, vocabulary], chunk by chunk.",
         "rung logits -m model.gguf -p \"Once upon a time\" -o logits.npy --quant exact --kv f32"},
    [CLI_EMBED] =
        {"embed", "one vector per line of text",
         "Reads lines from files or standard input and prints one vector per line, or writes all of them to a\n"
         ".npy file of float32 [lines, numbers]. Pooling, unit length and the longest line are what the model's\n"
         "folder says. A line costs what its own length costs, and its vector does not depend on the others.",
         "rung embed -m all-MiniLM-L6-v2 -f lines.txt -o vectors.npy\n"
         "echo 'How do I reset my password?' | rung embed -m all-MiniLM-L6-v2 --json"},
    [CLI_RUN] = {"run", "runs a graph (.rung text) on given inputs",
                 "Inputs that are not given are filled with random numbers; sizes come from the inputs and --bind.\n"
                 "Without -o the outputs are summarised.",
                 "rung run -m net.rung -i x=x.npy -o results\n"
                 "rung run -m net.rung --bind rows=64 --check\n"
                 "rung run -m net.rung --bind rows=512 --repeat 100 --profile"},
    [CLI_INSPECT] =
        {"inspect", "shows what is in a model and what becomes of it",
         "Takes GGUF files, safetensors, model folders and .rung text graphs. Without further flags: metadata and\n"
         "tensors, or inputs and outputs.",
         "rung inspect -m model.gguf\n"
         "rung inspect -m model.gguf --memory -c 8192 --ubatch 512\n"
         "rung inspect -m model.gguf --check"},
    [CLI_BENCH] =
        {"bench", "measures prompt and decode speed, and the share of the machine's limit reached",
         "Each size is measured --repeat times after one warm-up. The limit is what reading and computing allow:\n"
         "every run reads the weights once, and keys and values, no faster than this machine reads that many\n"
         "bytes again and again; and multiplies no faster than loops that do nothing else. Both are measured in\n"
         "the same run, and the one that takes longer counts. A text graph is run at every combination of its --bind\n"
         "values.",
         "rung bench -m model.gguf -p 512 -n 64 -t 2\n"
         "rung bench -m model.gguf -p 128,512 -n 32 --sequences 1,4 --json\n"
         "rung bench -m model.gguf -p 512 -n 64 --depth 2000\n"
         "rung bench -m net.rung --bind rows=1,64,512"},
    [CLI_ENV] = {"env", "shows instruction sets, threads, limits, devices and variables in force",
                 "What the library found on this machine and what it will use.",
                 "rung env\n"
                 "RUNG_MAX_ISA=avx2 rung env --json"},
    [CLI_PERPLEXITY] =
        {"perplexity", "perplexity of a text",
         "Cuts the text into windows of -c tokens; what is left over at the end is not read. Each window begins anew,\n"
         "with the begin token in place of its first one where the vocabulary has texts begin so. Scored are the\n"
         "tokens of its second half: of c tokens the positions c/2 to c-2 foretell the one behind them. Printed is\n"
         "the exponential of the mean of -ln p, and one standard error. That is how llama.cpp's tool counts, which "
         "wants two windows.",
         "rung perplexity -m model.gguf -f text.txt -c 512\n"
         "rung perplexity -m model.gguf -f text.txt --quant exact --kv f32 --json"},
    [CLI_CHAT] =
        {"chat", "interactive conversation",
         "Reads messages from standard input, one a line, and streams the answers. A line that ends with \\ goes on\n"
         "in the next one; lines between two lines of three double quotes are one message, also where it begins with\n"
         "a slash. Ctrl-C ends an answer, a second one the program. /reset begins anew, /system TEXT does so with\n"
         "another system prompt, /quit ends. Only what is new is read. With --json an object for each answer.",
         "rung chat -m model.gguf --system \"You answer briefly.\"\n"
         "printf 'Hello\\nAnd again\\n' | rung chat -m model.gguf --temp 0"},
    [CLI_COMPILE] = {"compile", "writes a compiled file",
                     "Optimises a text graph or a model and writes it with its ceiling: rung run then loads it and\n"
                     "compiles nothing. With --pack the file holds its weights too, packed, and needs nothing else.\n"
                     "It runs on other machines of the kind as well, with the kernels that these have.",
                     "rung compile -m net.rung -o net.compiled.rung --ceiling rows=512\n"
                     "rung compile -m model.gguf -o model.rung --pack --ubatch 64\n"
                     "rung run model.rung -i ids=ids.npy -i offsets=offsets.npy"},
    [CLI_TUNE] =
        {"tune", "measures the kernels of a model that can be done in several ways, and keeps the best",
         "Decode attention of the cuda device has candidates; what is fastest of those that are near enough to\n"
         "the reference is kept in a folder. Later starts that are told the folder by RUNG_TUNE take it from there.\n"
         "Nothing is measured at any other time. On other devices there is nothing to measure.",
         "rung tune -m model.gguf --device cuda --dir ~/.cache/rung/winners\n"
         "RUNG_TUNE=~/.cache/rung/winners rung generate -m model.gguf --device cuda -p Hello"},
    [CLI_QUANTIZE] = {"quantize", "writes a quantised GGUF", NULL, NULL},
    [CLI_CONVERT] = {"convert", "safetensors folder to GGUF", NULL, NULL},
    [CLI_GRAPH] = {"graph", "the graph as text or as a picture",
                   "What runs after compiling, or with --source a text graph as it stands. Text goes to standard\n"
                   "output; -o FILE.svg or --svg draws it: a box a node, weights inside the box that reads them.",
                   "rung graph -m net.rung\n"
                   "rung graph -m net.rung --source -o net.svg\n"
                   "rung graph -m model.gguf -o model.svg"},
    [CLI_CACHE] = {"cache", "the stored compiles: list, verify, trim, clear",
                   "rung cache list shows every entry, verify reads all of them and removes what is damaged, trim\n"
                   "removes what was used longest ago until --max is kept, clear removes everything.",
                   "rung cache list --dir ~/.cache/rung/compiles\n"
                   "RUNG_STORE=/var/cache/rung rung cache trim --max 2G"},
};

#define BIT(id) (1u << CLI_##id)
#define TO(field) offsetof(cli_options, field)
#define PLACE(field) .offset = TO(field)
enum {
  GENERATE = BIT(GENERATE),
  TOKENIZE = BIT(TOKENIZE),
  LOGITS = BIT(LOGITS),
  EMBED = BIT(EMBED),
  RUNS = BIT(RUN),
  INSPECT = BIT(INSPECT),
  BENCH = BIT(BENCH),
  ENVIRONMENT = BIT(ENV),
  COMPILE = BIT(COMPILE),
  GRAPH = BIT(GRAPH),
  CACHE = BIT(CACHE),
  PERPLEXITY = BIT(PERPLEXITY),
  CHAT = BIT(CHAT),
  TUNE = BIT(TUNE),
  SPEAKS = GENERATE | CHAT,                                                         /* choose tokens */
  TEXTS = GENERATE | LOGITS,                                                        /* read a prompt */
  MODELS = SPEAKS | LOGITS | PERPLEXITY | INSPECT | BENCH | COMPILE | GRAPH | TUNE, /* compile a language model */
  GRAPHS = MODELS | RUNS | EMBED,
  OPENS = GRAPHS | TOKENIZE,
  STORES = SPEAKS | LOGITS | PERPLEXITY | BENCH | EMBED | RUNS,
  EVERY = OPENS | ENVIRONMENT | CACHE
};

/* clang-format off */
const cli_flag cli_flags[] = {
    {OPENS, 0, "--model", "-m", CLI_TEXT, "FILE", PLACE(model), .required = true, .doc = "the model; may stand alone, without -m"},

    {TEXTS, 0, "--prompt", "-p", CLI_TEXT, "TEXT", PLACE(prompts), .repeat = true, .doc = "a prompt; given several times: several sequences"},
    {TEXTS, 0, "--file", "-f", CLI_TEXT, "FILE", PLACE(prompts), .repeat = true, .doc = "a prompt from a file, byte for byte; - is standard input"},
    {TEXTS, 0, "--ids", NULL, CLI_TEXT, "FILE", PLACE(prompts), .repeat = true, .doc = "a prompt as ids; needs no tokeniser"},
    {CHAT, 0, "--prompt", "-p", CLI_TEXT, "TEXT", PLACE(prompts), .repeat = true, .doc = "a message to begin with; may be repeated"},
    {CHAT, 0, "--file", "-f", CLI_TEXT, "FILE", PLACE(prompts), .repeat = true, .doc = "a file that is a message to begin with; - is standard input"},
    {PERPLEXITY, 0, "--file", "-f", CLI_TEXT, "FILE", PLACE(prompts), .repeat = true, .doc = "the text; - is standard input. Special tokens in it are plain text"},
    {PERPLEXITY, 0, "--ids", NULL, CLI_TEXT, "FILE", PLACE(prompts), .repeat = true, .doc = "the text as ids"},
    {PERPLEXITY, 0, "--ctx-size", "-c", CLI_COUNT, "N", PLACE(context), .lo = 0, .hi = 1 << 30, .doc = "tokens of a window; 0: 512"},
    {BENCH, 0, "--prompt", "-p", CLI_LIST, "N,N", PLACE(prompt_sizes), .lo = 1, .hi = 1 << 24, .standard = "512", .doc = "sizes of prompts, in tokens"},
    {SPEAKS, 0, "--predict", "-n", CLI_COUNT, "N", PLACE(predict), .lo = -1, .hi = 1e9, .standard = "-1", .doc = "most tokens to make; -1: until the text or the context ends"},
    {BENCH, 0, "--predict", "-n", CLI_COUNT, "N", PLACE(predict), .lo = 0, .hi = 1e6, .standard = "128", .doc = "tokens to decode; 0: none"},
    {BENCH, 0, "--depth", NULL, CLI_COUNT, "N", PLACE(depth), .lo = 0, .hi = 1 << 30, .standard = "0", .doc = "positions that each sequence holds before decoding begins; reading them is not measured"},
    {BENCH, 0, "--sequences", NULL, CLI_LIST, "N,N", PLACE(sequences), .lo = 1, .hi = 4096, .standard = "1", .doc = "sequences side by side"},

    {SPEAKS | INSPECT | BENCH, 0, "--ctx-size", "-c", CLI_COUNT, "N", PLACE(context), .lo = 0, .hi = 1 << 30, .doc = "positions that a sequence can reach; 0: what the prompt needs, at least the smaller of the model's and 4096"},
    {MODELS, 0, "--ubatch", NULL, CLI_COUNT, "N", PLACE(ubatch), .lo = 0, .hi = 65536, .doc = "most tokens of a prompt in one run; 0: 512, logits 64"},
    {MODELS, 0, "--kv", NULL, CLI_CHOICE, "f16|f32|bf16|q8_0", NULL, PLACE(kv), .standard = "f16", .doc = "type of stored keys and values"},

    {SPEAKS, 0, "--temp", NULL, CLI_NUMBER, "N", PLACE(temperature), .lo = 0, .hi = 1e6, .standard = "0.8", .doc = "temperature; 0: always the best token"},
    {SPEAKS, 0, "--top-k", NULL, CLI_COUNT, "N", PLACE(top_k), .lo = 0, .hi = 1e9, .standard = "40", .doc = "only the N best tokens; 0: all"},
    {SPEAKS, 0, "--top-p", NULL, CLI_NUMBER, "N", PLACE(top_p), .lo = 0, .hi = 1, .standard = "0.95", .doc = "only the best tokens that make up this share; 1: all"},
    {SPEAKS, 0, "--min-p", NULL, CLI_NUMBER, "N", PLACE(min_p), .lo = 0, .hi = 1, .standard = "0.05", .doc = "only tokens with this share of the best one's probability; 0: all"},
    {SPEAKS, 0, "--typical", NULL, CLI_NUMBER, "N", PLACE(typical_p), .lo = 0, .hi = 1, .standard = "1", .doc = "only the tokens nearest to the expected information that make up this share; 1: all"},
    {SPEAKS, 0, "--top-nsigma", NULL, CLI_NUMBER, "N", PLACE(top_n_sigma), .lo = -1, .hi = 1e6, .standard = "-1", .doc = "only logits within N standard deviations of the largest; 0, -1: all"},
    {SPEAKS, 0, "--xtc-probability", NULL, CLI_NUMBER, "N", PLACE(xtc_probability), .lo = 0, .hi = 1, .standard = "0", .doc = "how often all tokens above --xtc-threshold go but the least probable of them; 0: never"},
    {SPEAKS, 0, "--xtc-threshold", NULL, CLI_NUMBER, "N", PLACE(xtc_threshold), .lo = 0, .hi = 1, .standard = "0.1", .doc = "a probability; above 0.5: XTC is off"},
    {SPEAKS, 0, "--repeat-penalty", NULL, CLI_NUMBER, "N", PLACE(repeat_penalty), .lo = 1e-6, .hi = 1e6, .standard = "1", .doc = "divides positive logits of tokens that were there, multiplies others; 1: off"},
    {SPEAKS, 0, "--repeat-last-n", NULL, CLI_COUNT, "N", PLACE(repeat_last_n), .lo = -1, .hi = 1e9, .standard = "64", .doc = "how many last tokens are penalised; -1: all"},
    {SPEAKS, 0, "--presence-penalty", NULL, CLI_NUMBER, "N", PLACE(presence_penalty), .lo = -1e6, .hi = 1e6, .standard = "0", .doc = "taken off the logits of tokens that were there"},
    {SPEAKS, 0, "--frequency-penalty", NULL, CLI_NUMBER, "N", PLACE(frequency_penalty), .lo = -1e6, .hi = 1e6, .standard = "0", .doc = "taken off for each time that a token was there"},
    {SPEAKS, 0, "--dry-multiplier", NULL, CLI_NUMBER, "N", PLACE(dry_multiplier), .lo = 0, .hi = 1e6, .standard = "0", .doc = "penalty of what would repeat a sequence; 0: off"},
    {SPEAKS, 0, "--dry-base", NULL, CLI_NUMBER, "N", PLACE(dry_base), .lo = 1, .hi = 1e6, .standard = "1.75", .doc = "it grows by this for each token of the sequence"},
    {SPEAKS, 0, "--dry-allowed-length", NULL, CLI_COUNT, "N", PLACE(dry_allowed_length), .lo = 0, .hi = 1e9, .standard = "2", .doc = "sequences up to this length may be repeated"},
    {SPEAKS, 0, "--dry-penalty-last-n", NULL, CLI_COUNT, "N", PLACE(dry_last_n), .lo = -1, .hi = 1e9, .standard = "-1", .doc = "how many last tokens are searched; -1: all"},
    {SPEAKS, 0, "--dry-sequence-breaker", NULL, CLI_TEXT, "TEXT", PLACE(dry_breakers), .repeat = true, .doc = "a text that no repetition reaches over; may be repeated, \"none\": no such text; default: newline, colon, quote, asterisk"},
    {SPEAKS, 0, "--logit-bias", "-l", CLI_TEXT, "ID(+|-)N", PLACE(biases), .repeat = true, .doc = "added to a token's logit: 15043+1, 29905-0.5; 13-inf: never; may be repeated"},
    {SPEAKS, 0, "--logprobs", NULL, CLI_COUNT, "N", PLACE(logprobs), .lo = 0, .hi = 1000, .standard = "0", .doc = "with --json: log-probabilities of each token and of the N best"},
    {SPEAKS, 0, "--seed", "-s", CLI_COUNT, "N", PLACE(seed), .lo = -1, .hi = 9007199254740991.0, .standard = "-1", .doc = "of the sampling; -1: another one each time"},
    {SPEAKS, 0, "--keep", NULL, CLI_COUNT, "N", PLACE(keep), .lo = -1, .hi = 1 << 30, .standard = "-1", .doc = "when the context is full, forget the oldest half behind the first N tokens and go on; -1: stop there"},
    {SPEAKS, 0, "--ignore-eos", NULL, CLI_SWITCH, .value = NULL, PLACE(ignore_eos), .doc = "go on after the model's end of text"},
    {SPEAKS, 0, "--stop", NULL, CLI_TEXT, "TEXT", PLACE(stops), .repeat = true, .doc = "end before this text; may be repeated"},
    {GENERATE, 0, "--chat", NULL, CLI_SWITCH, .value = NULL, PLACE(chat), .doc = "each prompt is a message of a user, put into the model's chat template"},
    {SPEAKS, 0, "--system", NULL, CLI_TEXT, "TEXT", PLACE(system), .doc = "the system prompt of a conversation"},

    {EMBED, 0, "--file", "-f", CLI_TEXT, "FILE", PLACE(prompts), .repeat = true, .doc = "a file of lines; - is standard input, the default; may be repeated"},
    {EMBED, 0, "--ids", NULL, CLI_TEXT, "FILE", PLACE(prompts), .repeat = true, .doc = "a file whose lines are ids, special ones included; needs no tokeniser"},
    {EMBED, 0, "--output", "-o", CLI_TEXT, "FILE.npy", PLACE(output), .doc = "write the vectors there instead of printing them"},
    {EMBED, 0, "--pool", NULL, CLI_CHOICE, "model|mean|cls|last|max", PLACE(pool), .standard = "model", .doc = "how a line's rows become one vector; model: as its folder says"},
    {EMBED, 0, "--no-normalize", NULL, CLI_SWITCH, .value = NULL, PLACE(no_normalize), .doc = "vectors keep their length"},
    {EMBED, 0, "--truncate", NULL, CLI_SWITCH, .value = NULL, PLACE(truncate), .doc = "cut lines that are too long instead of refusing them"},
    {EMBED, 0, "--prefix", NULL, CLI_TEXT, "TEXT", PLACE(prefix), .doc = "put in front of every line"},
    {EMBED, 0, "--dims", NULL, CLI_COUNT, "N", PLACE(dims), .lo = 1, .hi = 1 << 20, .doc = "only the first N numbers of each vector; default: all"},
    {EMBED, 0, "--ctx-size", "-c", CLI_COUNT, "N", PLACE(context), .lo = 0, .hi = 65536, .doc = "most tokens of a line; 0: what the model's folder says, else as many as it has positions"},
    {EMBED, 0, "--ubatch", NULL, CLI_COUNT, "N", PLACE(ubatch), .lo = 0, .hi = 65536, .doc = "most tokens of one run; 0: 1024"},

    {TOKENIZE, 0, "--decode", NULL, CLI_SWITCH, .value = NULL, PLACE(decode), .doc = "ids on standard input to text"},
    {TOKENIZE, 0, "--no-special", NULL, CLI_SWITCH, .value = NULL, PLACE(no_special), .doc = "special tokens in the text are plain text; with --decode they are left out"},
    {TOKENIZE, 0, "--no-bos", NULL, CLI_SWITCH, .value = NULL, PLACE(no_bos), .doc = "add no begin or end token"},

    {LOGITS, 0, "--output", "-o", CLI_TEXT, "FILE.npy", PLACE(output), .required = true, .doc = "where to write them"},
    {RUNS, 0, "--output", "-o", CLI_TEXT, "DIR", PLACE(output), .doc = "write each output to DIR/NAME.npy"},
    {RUNS, 0, "--input", "-i", CLI_TEXT, "NAME=FILE.npy", PLACE(inputs), .repeat = true, .doc = "an input; may be repeated"},
    {RUNS | INSPECT, 0, "--bind", NULL, CLI_TEXT, "SYMBOL=N", PLACE(bindings), .repeat = true, .doc = "the value of a symbol; may be repeated"},
    {BENCH, 0, "--bind", NULL, CLI_TEXT, "SYMBOL=N,N", PLACE(bindings), .repeat = true, .doc = "values of a text graph's symbol; may be repeated"},
    {COMPILE, 0, "--output", "-o", CLI_TEXT, "FILE.rung", PLACE(output), .required = true, .doc = "where to write it"},
    {COMPILE, 0, "--ceiling", NULL, CLI_TEXT, "SYMBOL=N", PLACE(bindings), .repeat = true, .doc = "the largest value of a symbol; may be repeated. Default: of a text graph what it declares, of a model --ubatch"},
    {COMPILE, 0, "--target", NULL, CLI_CHOICE, "native|base|avx2|avx512|neon", PLACE(target), .standard = "native", .doc = "the instruction set to compile for, at most this machine's"},
    {COMPILE, 0, "--pack", NULL, CLI_SWITCH, .value = NULL, PLACE(pack), .doc = "put the weights into the file, packed"},
    {GRAPH, 0, "--output", "-o", CLI_TEXT, "FILE.svg", PLACE(output), .doc = "write a picture there"},
    {GRAPH, 0, "--svg", NULL, CLI_SWITCH, .value = NULL, PLACE(svg), .doc = "a picture on standard output"},
    {GRAPH, 0, "--source", NULL, CLI_SWITCH, .value = NULL, PLACE(source), .doc = "a text graph as it stands, not compiled"},
    {CACHE, 0, "--dir", NULL, CLI_TEXT, "DIR", PLACE(store), .doc = "the folder; default: RUNG_STORE"},
    {TUNE, 0, "--dir", NULL, CLI_TEXT, "DIR", PLACE(store), .doc = "where winners are kept; default: RUNG_TUNE"},
    {TUNE, 0, "--bound", NULL, CLI_CHOICE, "balanced|latency|accurate", NULL, PLACE(bound), .standard = "balanced", .doc = "how far results may be from the reference: 1e-3, 1e-2, 1e-5"},
    {TUNE, 0, "--depth", NULL, CLI_COUNT, "N", PLACE(depth), .lo = 1, .hi = 1 << 24, .standard = "1024", .doc = "positions that attention reads while it is measured"},
    {TUNE, 0, "--repeat", NULL, CLI_COUNT, "N", PLACE(repeat), .lo = 1, .hi = 100000, .standard = "8", .doc = "measured runs of each candidate; the median counts"},
    {TUNE, 0, "--again", NULL, CLI_SWITCH, .value = NULL, PLACE(again), .doc = "measure what has a winner, too"},
    {CACHE, 0, "--max", NULL, CLI_BYTES, "BYTES", PLACE(most), .doc = "trim: what may stay, e.g. 2G"},
    {STORES, 0, "--store", NULL, CLI_TEXT, "DIR", PLACE(store), .doc = "look for compiles and packed weights there and keep them, so that later starts make neither; default: RUNG_STORE, else nowhere"},
    {RUNS | BENCH | COMPILE, 0, "--weights", NULL, CLI_TEXT, "FILE", PLACE(weights), .doc = "a GGUF or safetensors file, or a folder, with the weights that the graph names"},
    {RUNS | BENCH, 0, "--repeat", NULL, CLI_COUNT, "N", PLACE(repeat), .lo = 1, .hi = 1e6, .standard = NULL, .doc = "measured runs; default: run 1, bench 5"},
    {RUNS, 0, "--check", NULL, CLI_SWITCH, .value = NULL, PLACE(check), .doc = "compare outputs, then each step, with the reference device"},
    {RUNS, 0, "--profile", NULL, CLI_SWITCH, .value = NULL, PLACE(profile), .doc = "time by op and kernel"},

    {INSPECT, 0, "--graph", NULL, CLI_SWITCH, .value = NULL, PLACE(graph), .doc = "the optimised graph as text"},
    {INSPECT, 0, "--plan", NULL, CLI_SWITCH, .value = NULL, PLACE(plan), .doc = "steps, kernels, buffers with offset, size and lifetime"},
    {INSPECT, 0, "--memory", NULL, CLI_SWITCH, .value = NULL, PLACE(memory_report), .doc = "memory by class at -c and --ubatch, or at --bind"},
    {INSPECT, 0, "--kernels", NULL, CLI_SWITCH, .value = NULL, PLACE(kernels), .doc = "kernels chosen, and how often; winners of tuning"},
    {INSPECT, 0, "--fused", NULL, CLI_SWITCH, .value = NULL, PLACE(fused), .doc = "what was fused, what nearly and why not"},
    {INSPECT, 0, "--check", NULL, CLI_SWITCH, .value = NULL, PLACE(check), .doc = "look for NaN and infinity in every tensor"},

    {OPENS | ENVIRONMENT, 0, "--threads", "-t", CLI_COUNT, "N", PLACE(threads), .lo = 1, .hi = 1024, .doc = "most threads; default: what this process may use well"},
    {OPENS, 0, "--device", NULL, CLI_CHOICE, "cpu|ref|cuda", "cuda:0|cuda:1", PLACE(device), .standard = "cpu", .doc = "what runs the model; ref is the slow reference"},
    {OPENS, 0, "--precision", NULL, CLI_CHOICE, "f32|f16|bf16|mixed|mixed-f16", NULL, PLACE(precision), .standard = "f32", .doc = "f16, bf16: of all that lies in memory but inputs and outputs; mixed: of what is multiplied alone, in bf16; sums stay f32"},
    {OPENS, 0, "--quant", NULL, CLI_CHOICE, "fast|exact", PLACE(quant), .standard = "fast", .doc = "meet quantised weights with 8-bit activations, or with f32"},
    {OPENS, 0, "--deterministic", NULL, CLI_SWITCH, .value = NULL, PLACE(deterministic), .doc = "a row's bits do not depend on what comes beside it (docs/cuda.md); the cpu is always so"},
    {OPENS, 0, "--no-map", NULL, CLI_SWITCH, .value = NULL, PLACE(no_map), .doc = "read the file into memory instead of mapping it"},
    {STORES | TOKENIZE, 0, "--memory", NULL, CLI_BYTES, "BYTES", PLACE(memory), .doc = "budget, e.g. 512M; default: what the system leaves"},
    {STORES | TOKENIZE, 0, "--trace", NULL, CLI_TEXT, "FILE", PLACE(trace), .doc = "write a trace for Perfetto or chrome://tracing; default: RUNG_TRACE"},
    {EVERY, 0, "--json", NULL, CLI_SWITCH, .value = NULL, PLACE(json), .doc = "one JSON object per result"},
    {EVERY, 0, "--verbose", "-v", CLI_SWITCH, .value = NULL, PLACE(verbose), .doc = "say more on standard error"},
    {EVERY, 0, "--quiet", "-q", CLI_SWITCH, .value = NULL, PLACE(quiet), .doc = "nothing on standard error but errors"},
    {EVERY, 0, "--help", "-h", CLI_SWITCH, .value = NULL, PLACE(help), .doc = "this text"},
    {EVERY, 0, "--version", NULL, CLI_SWITCH, .value = NULL, PLACE(version), .doc = "the version"},

    /* Known by name, there in a later version. */
    {0, OPENS, "--no-compile", NULL, CLI_SWITCH, .value = NULL},
};
/* clang-format on */
const int cli_flag_count = (int)(sizeof cli_flags / sizeof cli_flags[0]);

const cli_variable cli_variables[] = {
    {"RUNG_THREADS", "most threads, where -t is not given"},
    {"RUNG_MAX_ISA", "cap of the instruction set: base, avx2, avx512, neon"},
    {"RUNG_TRACE", "file for a trace, where --trace is not given"},
    {"RUNG_STORE", "folder of stored compiles, where --store or --dir is not given"},
    {"RUNG_TUNE", "folder of winners that rung tune found"},
    {"RUNG_TUNE_PROFILE", "balanced, latency, accurate: what tuning may choose; deterministic: no winners are taken"},
    {"RUNG_CUDA_DRIVER", "file of NVIDIA's driver, where it is not the system's"},
    {"RUNG_NVRTC", "file of the CUDA run-time compiler, where it is not found by its name"},
    {"RUNG_CUDA_CACHE", "folder in which compiled kernels are kept for the next process"},
    {"RUNG_CUDA_DEVICE", "number of the GPU, 0 where not given"},
    {"RUNG_CUDA_GRAPHS", "0: steps are launched one by one, none are captured"},
    {"RUNG_CUDA_OVERLAP", "0: no kernel begins before the one in front of it has ended"},
    {"RUNG_CUDA_WITHOUT", "kernels of the CUDA device with this text in their names are left out"},
    {"RUNG_CUDA_KERNELS", "0: every step runs on the host, to find out whether a kernel is to blame"},
};
const int cli_variable_count = (int)(sizeof cli_variables / sizeof cli_variables[0]);

const char cli_exit_text[] =
    "0 ok, 1 failed, 2 usage, 3 bad input file, 4 not supported, 5 out of memory or over the budget, 130 interrupted";
