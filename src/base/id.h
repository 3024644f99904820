/*
 * id: random and time-ordered identifiers.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_TRACE_SIZE 33 /* 32 hex digits (W3C trace context) and the NUL */
#define ID_SPAN_SIZE  17

/* Begins with the time, so that an index over trace ids grows at its end. */
char *id_trace(char out[ID_TRACE_SIZE]);
char *id_span(char out[ID_SPAN_SIZE]);
/* 32 lower-case hex digits, not all zero. */
bool id_is_trace(const char *trace);
/* The trace id of a W3C traceparent ("00-TRACE-SPAN-01"). false: malformed, to be ignored. */
bool id_trace_of_parent(const char *traceparent, char out[ID_TRACE_SIZE]);
/*
 * The sampled flag of a trace. False: traceparent belongs to `trace` and clears the flag. True also
 * if it is NULL, malformed or of another trace.
 */
bool id_parent_samples(const char *traceparent, const char *trace);
/* Uniform in [0, below); below must not be 0. */
uint64_t id_random_below(uint64_t below);
/* Ends the program if the system has none. */
void id_random_bytes(void *out, size_t n);
/* n characters of [A-Za-z0-9] and a NUL. */
char *id_random_text(char *out, size_t n);

#endif
