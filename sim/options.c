#include "sim/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LISTEN_HELP "another address than 127.0.0.1; with :PORT in place of --port"

enum kind { TEXT, NUMBER, FLAG, TOKEN, LISTEN, HELP };

struct row {
        const char *name, *value;
        enum kind kind;
        size_t at;
        const char *help;
};

#define AT(field) offsetof(struct options, field)

/* clang-format off */
static const struct row rows[] = {
        { "port",      "N",       TEXT,   AT(port),      "listen on this port of 127.0.0.1; 0 takes a free one" },
        { "listen",    "ADDRESS", LISTEN, 0,             LISTEN_HELP },
        { "token",     "T",       TOKEN,  0,             "a bot; give it again for more bots" },
        { "tls-cert",  "FILE",    TEXT,   AT(tls_cert),  "speak TLS with this certificate ..." },
        { "tls-key",   "FILE",    TEXT,   AT(tls_key),   "... and this key" },
        { "ca",        "FILE",    TEXT,   AT(ca_file),   "certificates to trust when calling a bot's address" },
        { "no-limits", NULL,      FLAG,   AT(no_limits), "no rate limits" },
        { "lax",       NULL,      FLAG,   AT(lax),       "accept what the official description does not know, as the real server does" },
        { "keep",      "N",       NUMBER, AT(keep),      "messages kept per chat" },
        { "seed",      "N",       NUMBER, AT(seed),      "of the dice that decide on faults" },
        { "quiet",     NULL,      FLAG,   AT(quiet),     "print only what a program needs to know: the address" },
        { "help",      NULL,      HELP,   0,             "this text" },
};
/* clang-format on */

static int mistake(const struct options_about *about, const char *what)
{
        fprintf(stderr, "dragoman-sim %s: %s\nTry 'dragoman-sim %s --help'.\n", about->name, what,
                about->name);
        return 64;
}

static void show_option(const char *name, const char *value, const char *help)
{
        char left[40];

        snprintf(left, sizeof(left), "--%s%s%s", name, value ? " " : "", value ? value : "");
        printf("  %-18s %s\n", left, help);
}

static void show_help(const struct options_about *about)
{
        printf("usage: dragoman-sim %s [options]\n\n%s\n", about->name, about->about);
        for (size_t i = 0; i < COUNT(rows); i++)
                show_option(rows[i].name, rows[i].value, rows[i].help);
        for (const struct own_option *own = about->own; own->name; own++)
                show_option(own->name, own->value, own->help);
        printf("\nWithout options the port is %s and the bot's token %s.\n\nControl, all JSON:\n%s",
               about->port, about->token, about->controls);
}

/* "0.0.0.0", "0.0.0.0:8081" or "[::]:8081". */
static int take_listen(struct options *o, const char *said)
{
        const char *colon = strrchr(said, ':'),
                   *port = colon && !strchr(colon, ']') ? colon + 1 : NULL;
        size_t n = port ? (size_t)(colon - said) : strlen(said);

        if (n == 0 || n >= sizeof(o->host))
                return -1;
        snprintf(o->host, sizeof(o->host), "%.*s", (int)n, said);
        if (port)
                o->port = port;
        return 0;
}

static int take_number(uint64_t *out, const char *said)
{
        char *end;

        errno = 0;
        *out = strtoull(said, &end, 10);
        return errno == 0 && *said && *said != '-' && *end == '\0' ? 0 : -1;
}

/* 0, -1 for help, or the exit code. */
static int take(struct options *o, const struct options_about *about, const struct row *row,
                const char *said)
{
        void *at = (char *)o + row->at;

        switch (row->kind) {
        case TEXT:
                *(const char **)at = said;
                return 0;
        case NUMBER:
                return take_number(at, said) == 0
                               ? 0
                               : mistake(about, "--keep and --seed take a number");
        case FLAG:
                *(bool *)at = true;
                return 0;
        case TOKEN:
                if (o->token_count == COUNT(o->tokens))
                        return mistake(about,
                                       "too many tokens; more can be made with POST /sim/bots");
                o->tokens[o->token_count++] = said;
                return 0;
        case LISTEN:
                return take_listen(o, said) == 0 ? 0 : mistake(about, "--listen takes an address");
        case HELP:
                break;
        }
        show_help(about);
        return -1;
}

/* All options in getopt's form, the simulator's own ones behind the others. */
static void make_longs(const struct options_about *about,
                       struct option longs[COUNT(rows) + OPTIONS_OWN + 1])
{
        size_t n = 0;

        for (; n < COUNT(rows); n++)
                longs[n] =
                        (struct option){ rows[n].name,
                                         rows[n].value ? required_argument : no_argument, NULL, 0 };
        for (size_t i = 0; i < OPTIONS_OWN && about->own[i].name; i++)
                longs[n++] = (struct option){ about->own[i].name, required_argument, NULL, 0 };
        longs[n] = (struct option){ 0 };
}

static int check(struct options *o, const struct options_about *about, bool rest)
{
        if (rest)
                return mistake(about, "it takes options only");
        if (!o->tls_cert != !o->tls_key)
                return mistake(about, "--tls-cert and --tls-key belong together");
        if (o->keep > 0 && o->keep < OPTIONS_KEEP_MIN)
                return mistake(about, "--keep takes 8 or more");
        if (o->token_count == 0)
                o->tokens[o->token_count++] = about->token;
        return 0;
}

int options_read(struct options *o, const struct options_about *about, int argc, char **argv)
{
        struct option longs[COUNT(rows) + OPTIONS_OWN + 1];
        int c, at = 0, rc = 0;

        *o = (struct options){ .host = "127.0.0.1", .port = about->port };
        make_longs(about, longs);
        optind = 1;
        while (rc == 0 && (c = getopt_long(argc, argv, "hq", longs, &at)) != -1) {
                if (c == 'q')
                        o->quiet = true;
                else if (c == 'h')
                        rc = take(o, about, &rows[COUNT(rows) - 1], "");
                else if (c != 0)
                        return 64; /* getopt has told it */
                else if ((size_t)at < COUNT(rows))
                        rc = take(o, about, &rows[at], optarg ? optarg : "");
                else
                        o->own[(size_t)at - COUNT(rows)] = optarg;
        }
        return rc != 0 ? rc : check(o, about, optind < argc);
}

char *options_address(const struct options *o, const char *port)
{
        return mem_printf("%s:%s", o->host, port);
}
