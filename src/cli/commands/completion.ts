import { EarlyExit } from "../../core/exit.js";
import type { Call } from "./call.js";

const scripts = {
  bash: `# bash completion for bulkgen. Load it with: source <(bulkgen completion bash)
_bulkgen_completions() {
  local IFS=$'\\n'
  local word="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=($(bulkgen --get-completions "\${COMP_WORDS[@]:1:COMP_CWORD}"))
  # Without a match, complete file names.
  if [ \${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi
}
complete -o filenames -F _bulkgen_completions bulkgen
`,
  zsh: `#compdef bulkgen
# zsh completion for bulkgen. Load it with: source <(bulkgen completion zsh)
_bulkgen_completions() {
  local -a replies
  replies=("\${(@f)$(bulkgen --get-completions "\${words[@]:1:$((CURRENT - 1))}")}")
  if [ -n "\${replies[1]}" ]; then _describe 'bulkgen' replies; else _files; fi
}
# A shell without a ~/.zshrc of its own, as on a new Mac, has not loaded zsh's completion yet.
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _bulkgen_completions bulkgen
`,
  fish: `# fish completion for bulkgen. Load it with: bulkgen completion fish | source
function __bulkgen_completions
    set -l words (commandline -opc) (commandline -ct)
    set -l found (bulkgen --get-completions $words[2..-1] | string match -rv '^$')
    # Without a match, complete file names.
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c bulkgen -f -a '(__bulkgen_completions)'
`,
};

export async function completion({ args, machine }: Call<unknown, { shell?: string }>): Promise<undefined> {
  const own = /(?:^|\/)(zsh|fish)$/.exec(machine.env["SHELL"] ?? "")?.[1];
  const shell = args.shell ?? own ?? "bash";
  if (!Object.hasOwn(scripts, shell))
    throw new EarlyExit("usage", `shell: expected bash, zsh or fish, got ${JSON.stringify(shell)}`);
  machine.stdout.write(scripts[shell as keyof typeof scripts]);
}
