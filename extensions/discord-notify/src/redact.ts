/**
 * Takes secrets out of what is reported. Every pattern is bounded, so that no text, however hostile,
 * takes long.
 */

export type Redact = (text: string) => string;

const HIDDEN = "[redacted]";

/** What surrounds a secret stays: `$1` and `$2`. */
const BUILT_IN: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,16384}?(?:-----END [A-Z ]{0,40}-----|$)/g, ""],
  [
    /(authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:bearer|basic|bot|token)\s{1,4})[^\s"'`]{1,4096}/gi,
    "$1",
  ],
  [/(\bbearer\s{1,4})[\w.~+/=-]{12,4096}/gi, "$1"],
  [/(\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@"']{0,100}:)[^\s/@"']{1,256}(?=@)/gi, "$1"],
  // NAME=value, "name": "value", --name value
  [
    /((?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[\w-]{0,24}["']?\s{0,4}[:=]\s{0,4})("[^"\n]{1,4096}"|'[^'\n]{1,4096}'|[^\s"'&;|,)}]{1,4096})/gi,
    "$1",
  ],
  [
    /(--?(?:password|passphrase|secret|token|api-key|access-key)\s{1,4})(?:"[^"\n]{1,4096}"|'[^'\n]{1,4096}'|[^\s-][^\s]{0,4096})/gi,
    "$1",
  ],
  [/((?:-u|--user)\s{1,4}["']?[^\s:"']{1,100}:)[^\s"']{1,256}/g, "$1"],
  // tokens that can be told by their shape
  [/\b(?:sk|pk|rk)[-_][\w-]{16,256}/g, ""],
  [/\bgh[pousr]_\w{20,256}|\bgithub_pat_\w{20,256}|\bglpat-[\w-]{16,256}|\bnpm_\w{30,256}/g, ""],
  [/\bxox[a-z]-[\w-]{10,256}|\bxapp-[\w-]{10,256}/g, ""],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{35}/g, ""],
  [/\beyJ[\w-]{8,2048}\.[\w-]{8,4096}\.[\w-]{8,2048}/g, ""],
  [/\b[MNO][\w-]{22,30}\.[\w-]{6}\.[\w-]{27,45}/g, ""],
  [/\b\d{8,10}:[\w-]{35}\b/g, ""],
];

/** `patterns`: further regular expressions. `secrets`: texts that must never appear, such as keys. */
export function redactor(patterns: readonly RegExp[], secrets: readonly string[]): Redact {
  const literal = secrets.filter((secret) => secret.length >= 4);
  return (text) => {
    for (const secret of literal) {
      if (text.includes(secret)) text = text.replaceAll(secret, HIDDEN);
    }
    for (const [pattern, kept] of BUILT_IN) text = text.replace(pattern, `${kept}${HIDDEN}`);
    for (const pattern of patterns) text = text.replace(pattern, HIDDEN);
    return text;
  };
}
