/*
 * log: one line per event on standard error, as text or JSON. Any thread.
 *
 *     log_info("adapter connected", LOG_S("adapter", name), LOG_I("attempt", 3));
 *
 * The message is a constant; fields carry the rest. Registered secrets are replaced by stars. When
 * standard error is not read, lines are dropped and counted instead of blocking.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_field {
        const char *key; /* NULL ends the list */
        const char *text;
        int64_t number; /* used when text is NULL */
};

/* NULL becomes "". */
static inline const char *log_text(const char *text)
{
        return text ? text : "";
}

#define LOG_S(key, text) ((struct log_field){ (key), log_text(text), 0 })
#define LOG_I(key, n)    ((struct log_field){ (key), NULL, (int64_t)(n) })
#define LOG_END          ((struct log_field){ NULL, NULL, 0 })

#define log_debug(...)   log_write(LOG_DEBUG, __VA_ARGS__, LOG_END)
#define log_info(...)    log_write(LOG_INFO, __VA_ARGS__, LOG_END)
#define log_warn(...)    log_write(LOG_WARN, __VA_ARGS__, LOG_END)
#define log_error(...)   log_write(LOG_ERROR, __VA_ARGS__, LOG_END)

void log_setup(enum log_format format, enum log_level least);
/* Takes struct log_field by value up to LOG_END; use the macros. */
void log_write(enum log_level level, const char *what, ...);

#define LOG_HIDE_SHORTEST 6 /* shorter ones are parts of words */
/* Registers a secret to be starred out, unless it is shorter than that. */
void log_hide(const char *secret, size_t n);
void log_unhide(const char *secret, size_t n);
/* Stars secrets out of other text, in place. */
void log_redact(char *text);
/* For tests: lines go to this function; NULL restores standard error. */
void log_divert(void (*sink)(const char *line, void *arg), void *arg);

#endif
