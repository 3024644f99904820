/** Reads values of a configuration file: what is wrong is named by its key, with what is accepted. */

export class ConfigError extends Error {
  constructor(at: string, expected: string, value?: unknown) {
    const got = value === undefined ? "" : `, not ${shown(value)}`;
    super(`${at || "the file"}: expected ${expected}${got}`);
    this.name = "ConfigError";
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

export type Reader<T> = (value: unknown, at: string) => T;

/** Its value is never shown. */
export const secret: Reader<string> = (value, at) => {
  if (typeof value === "string" && /^[\x21-\x7e]{1,512}$/.test(value)) return value;
  throw new ConfigError(at, "a text of printable characters without blanks");
};

export const text =
  (max: number): Reader<string> =>
  (value, at) => {
    if (typeof value === "string" && value.length > 0 && value.length <= max) return value;
    throw new ConfigError(at, `a text of 1 to ${max} characters`, value);
  };

/** An id of a chat platform. As a number it would be rounded beyond 2^53. */
export const id: Reader<string> = (value, at) => {
  if (typeof value === "number" && !Number.isSafeInteger(value))
    throw new ConfigError(at, "an id in quotes, because JavaScript would round this number");
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  return text(512)(value, at);
};

export const flag: Reader<boolean> = (value, at) => {
  if (typeof value === "boolean") return value;
  throw new ConfigError(at, "true or false", value);
};

export const whole =
  (min: number, max: number): Reader<number> =>
  (value, at) => {
    if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max)
      return Number(value);
    throw new ConfigError(at, `a whole number from ${min} to ${max}`, value);
  };

export const choice =
  <T extends string>(...choices: readonly T[]): Reader<T> =>
  (value, at) => {
    const found = choices.find((one) => one === value);
    if (found !== undefined) return found;
    throw new ConfigError(at, `one of ${choices.join(", ")}`, value);
  };

export const pattern =
  (flags: string): Reader<RegExp> =>
  (value, at) => {
    const source = text(1000)(value, at);
    try {
      return new RegExp(source, flags);
    } catch (error) {
      throw new ConfigError(at, `a regular expression (${(error as Error).message})`, value);
    }
  };

export const list =
  <T>(item: Reader<T>, max: number): Reader<T[]> =>
  (value, at) => {
    if (!Array.isArray(value) || value.length > max)
      throw new ConfigError(at, `a list of at most ${max}`, value);
    return value.map((one, i) => item(one, `${at}[${i}]`));
  };

/** Values by names of the reader's choice. */
export const named =
  <K extends string, T>(keys: readonly K[], item: Reader<T>): Reader<Partial<Record<K, T>>> =>
  (value, at) => {
    const read: Reader<unknown> = object(
      Object.fromEntries(keys.map((key) => [key, item])) as Record<K, Reader<T>>,
    );
    return read(value, at) as Partial<Record<K, T>>;
  };

type Shape = Record<string, Reader<unknown>>;
type Read<S extends Shape> = { [K in keyof S]?: ReturnType<S[K]> };

/** An object of these keys and no others, each optional. */
export const object =
  <S extends Shape>(shape: S): Reader<Read<S>> =>
  (value, at) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw new ConfigError(at, "an object", value);
    const read: Record<string, unknown> = {};
    for (const [key, member] of Object.entries(value)) {
      const reader = Object.hasOwn(shape, key) ? shape[key] : undefined;
      const where = at ? `${at}.${key}` : key;
      if (!reader)
        throw new ConfigError(where, `no such key, but one of ${Object.keys(shape).join(", ")}`);
      read[key] = reader(member, where);
    }
    return read as Read<S>;
  };
