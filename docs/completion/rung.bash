# Completion of the rung command for bash (and zsh after bashcompinit). Made by tools/gen_man.c.
_rung() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "generate tokenize logits embed run inspect bench env compile graph cache --help --version" -- "$word"))
    return
  fi
  case $command:$before in
    generate:--model|generate:-m) compopt -o default; return ;;
    generate:--prompt|generate:-p) return ;;
    generate:--file|generate:-f) compopt -o default; return ;;
    generate:--ids) compopt -o default; return ;;
    generate:--predict|generate:-n) return ;;
    generate:--ctx-size|generate:-c) return ;;
    generate:--ubatch) return ;;
    generate:--kv) words="f16 f32 bf16" ;;
    generate:--temp) return ;;
    generate:--top-k) return ;;
    generate:--top-p) return ;;
    generate:--min-p) return ;;
    generate:--typical) return ;;
    generate:--top-nsigma) return ;;
    generate:--xtc-probability) return ;;
    generate:--xtc-threshold) return ;;
    generate:--repeat-penalty) return ;;
    generate:--repeat-last-n) return ;;
    generate:--presence-penalty) return ;;
    generate:--frequency-penalty) return ;;
    generate:--dry-multiplier) return ;;
    generate:--dry-base) return ;;
    generate:--dry-allowed-length) return ;;
    generate:--dry-penalty-last-n) return ;;
    generate:--dry-sequence-breaker) return ;;
    generate:--logit-bias|generate:-l) return ;;
    generate:--logprobs) return ;;
    generate:--seed|generate:-s) return ;;
    generate:--keep) return ;;
    generate:--stop) return ;;
    generate:--store) compopt -o default; return ;;
    generate:--threads|generate:-t) return ;;
    generate:--device) words="cpu ref cuda" ;;
    generate:--precision) words="f32" ;;
    generate:--quant) words="fast exact" ;;
    generate:--memory) return ;;
    generate:--trace) compopt -o default; return ;;
    tokenize:--model|tokenize:-m) compopt -o default; return ;;
    logits:--model|logits:-m) compopt -o default; return ;;
    logits:--prompt|logits:-p) return ;;
    logits:--file|logits:-f) compopt -o default; return ;;
    logits:--ids) compopt -o default; return ;;
    logits:--ubatch) return ;;
    logits:--kv) words="f16 f32 bf16" ;;
    logits:--output|logits:-o) compopt -o default; return ;;
    logits:--store) compopt -o default; return ;;
    logits:--threads|logits:-t) return ;;
    logits:--device) words="cpu ref cuda" ;;
    logits:--precision) words="f32" ;;
    logits:--quant) words="fast exact" ;;
    logits:--memory) return ;;
    logits:--trace) compopt -o default; return ;;
    embed:--model|embed:-m) compopt -o default; return ;;
    embed:--file|embed:-f) compopt -o default; return ;;
    embed:--ids) compopt -o default; return ;;
    embed:--output|embed:-o) compopt -o default; return ;;
    embed:--pool) words="model mean cls last max" ;;
    embed:--prefix) return ;;
    embed:--dims) return ;;
    embed:--ctx-size|embed:-c) return ;;
    embed:--ubatch) return ;;
    embed:--store) compopt -o default; return ;;
    embed:--threads|embed:-t) return ;;
    embed:--device) words="cpu ref cuda" ;;
    embed:--precision) words="f32" ;;
    embed:--quant) words="fast exact" ;;
    embed:--memory) return ;;
    embed:--trace) compopt -o default; return ;;
    run:--model|run:-m) compopt -o default; return ;;
    run:--output|run:-o) compopt -o default; return ;;
    run:--input|run:-i) compopt -o default; return ;;
    run:--bind) return ;;
    run:--store) compopt -o default; return ;;
    run:--weights) compopt -o default; return ;;
    run:--repeat) return ;;
    run:--threads|run:-t) return ;;
    run:--device) words="cpu ref cuda" ;;
    run:--precision) words="f32" ;;
    run:--quant) words="fast exact" ;;
    run:--memory) return ;;
    run:--trace) compopt -o default; return ;;
    inspect:--model|inspect:-m) compopt -o default; return ;;
    inspect:--ctx-size|inspect:-c) return ;;
    inspect:--ubatch) return ;;
    inspect:--kv) words="f16 f32 bf16" ;;
    inspect:--bind) return ;;
    inspect:--threads|inspect:-t) return ;;
    inspect:--device) words="cpu ref cuda" ;;
    inspect:--precision) words="f32" ;;
    inspect:--quant) words="fast exact" ;;
    bench:--model|bench:-m) compopt -o default; return ;;
    bench:--prompt|bench:-p) return ;;
    bench:--predict|bench:-n) return ;;
    bench:--sequences) return ;;
    bench:--ctx-size|bench:-c) return ;;
    bench:--ubatch) return ;;
    bench:--kv) words="f16 f32 bf16" ;;
    bench:--bind) return ;;
    bench:--store) compopt -o default; return ;;
    bench:--weights) compopt -o default; return ;;
    bench:--repeat) return ;;
    bench:--threads|bench:-t) return ;;
    bench:--device) words="cpu ref cuda" ;;
    bench:--precision) words="f32" ;;
    bench:--quant) words="fast exact" ;;
    bench:--memory) return ;;
    bench:--trace) compopt -o default; return ;;
    env:--threads|env:-t) return ;;
    compile:--model|compile:-m) compopt -o default; return ;;
    compile:--ubatch) return ;;
    compile:--kv) words="f16 f32 bf16" ;;
    compile:--output|compile:-o) compopt -o default; return ;;
    compile:--ceiling) return ;;
    compile:--target) words="native base avx2 avx512 neon" ;;
    compile:--weights) compopt -o default; return ;;
    compile:--threads|compile:-t) return ;;
    compile:--device) words="cpu ref cuda" ;;
    compile:--precision) words="f32" ;;
    compile:--quant) words="fast exact" ;;
    graph:--model|graph:-m) compopt -o default; return ;;
    graph:--ubatch) return ;;
    graph:--kv) words="f16 f32 bf16" ;;
    graph:--output|graph:-o) compopt -o default; return ;;
    graph:--threads|graph:-t) return ;;
    graph:--device) words="cpu ref cuda" ;;
    graph:--precision) words="f32" ;;
    graph:--quant) words="fast exact" ;;
    cache:--dir) compopt -o default; return ;;
    cache:--max) return ;;
  esac
  if [ -z "$words" ]; then
    case $command in
      generate) words=" --model -m --prompt -p --file -f --ids --predict -n --ctx-size -c --ubatch --kv --temp --top-k --top-p --min-p --typical --top-nsigma --xtc-probability --xtc-threshold --repeat-penalty --repeat-last-n --presence-penalty --frequency-penalty --dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n --dry-sequence-breaker --logit-bias -l --logprobs --seed -s --keep --ignore-eos --stop --store --threads -t --device --precision --quant --no-map --memory --trace --json --verbose -v --quiet -q --help -h --version" ;;
      tokenize) words=" --model -m --decode --no-special --no-bos --no-map --json --verbose -v --quiet -q --help -h --version" ;;
      logits) words=" --model -m --prompt -p --file -f --ids --ubatch --kv --output -o --store --threads -t --device --precision --quant --no-map --memory --trace --json --verbose -v --quiet -q --help -h --version" ;;
      embed) words=" --model -m --file -f --ids --output -o --pool --no-normalize --truncate --prefix --dims --ctx-size -c --ubatch --store --threads -t --device --precision --quant --no-map --memory --trace --json --verbose -v --quiet -q --help -h --version" ;;
      run) words=" --model -m --output -o --input -i --bind --store --weights --repeat --check --profile --threads -t --device --precision --quant --no-map --memory --trace --json --verbose -v --quiet -q --help -h --version" ;;
      inspect) words=" --model -m --ctx-size -c --ubatch --kv --bind --graph --plan --memory --kernels --fused --check --threads -t --device --precision --quant --no-map --json --verbose -v --quiet -q --help -h --version" ;;
      bench) words=" --model -m --prompt -p --predict -n --sequences --ctx-size -c --ubatch --kv --bind --store --weights --repeat --threads -t --device --precision --quant --no-map --memory --trace --json --verbose -v --quiet -q --help -h --version" ;;
      env) words=" --threads -t --json --verbose -v --quiet -q --help -h --version" ;;
      compile) words=" --model -m --ubatch --kv --output -o --ceiling --target --pack --weights --threads -t --device --precision --quant --no-map --json --verbose -v --quiet -q --help -h --version" ;;
      graph) words=" --model -m --ubatch --kv --output -o --svg --source --threads -t --device --precision --quant --no-map --json --verbose -v --quiet -q --help -h --version" ;;
      cache) words=" --dir --max --json --verbose -v --quiet -q --help -h --version" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _rung rung
