#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "cli/command.h"

static void flag_line(struct buf *out, const struct flag *f)
{
        char left[48];

        if (f->letter)
                snprintf(left, sizeof(left), "-%c, --%s%s%s", f->letter, f->name,
                         f->value ? " " : "", f->value ? f->value : "");
        else
                snprintf(left, sizeof(left), "    --%s%s%s", f->name, f->value ? " " : "",
                         f->value ? f->value : "");
        buf_addf(out, "  %-26s %s\n", left, f->help);
}

static void write_overview(struct buf *out)
{
        buf_addstr(out, "Dragoman connects chat platforms and agents. No message is lost or "
                        "answered twice.\n"
                        "\n"
                        "usage: dragoman COMMAND [...]\n"
                        "       dragoman DIR              short for: dragoman run DIR\n"
                        "\n");
        for (const struct cli_command *c = commands; c->name; c++)
                buf_addf(out, "  %-13s %s\n", c->name, c->summary);
        buf_addstr(out, "\n"
                        "Start with:  dragoman chat\n"
                        "Learn more:  dragoman help COMMAND\n"
                        "\n"
                        "Every command takes --dir DIR (default " DEFAULT_DIR "), --json and "
                        "--help.\n"
                        "Exit codes: 0 success, 1 failure, 64 wrong usage, 69 no daemon, 78 wrong "
                        "configuration.\n");
}

void help_write(const struct cli_command *c, struct buf *out)
{
        if (!c) {
                write_overview(out);
                return;
        }
        buf_addf(out, "dragoman %s: %s\n\nusage: dragoman %s%s%s\n\n%s\nFlags:\n", c->name,
                 c->summary, c->name, c->usage[0] ? " " : "", c->usage, c->help);
        for (const struct flag *f = c->flags; f && f->name; f++)
                flag_line(out, f);
        for (const struct flag *f = common_flags; f->name; f++)
                flag_line(out, f);
}

static void flags_json(struct buf *out, const struct flag *f)
{
        for (; f && f->name; f++) {
                char letter[2] = { f->letter, '\0' };

                jsonw_open(out, '{');
                jsonw_str(out, "name", f->name);
                jsonw_str(out, "letter", f->letter ? letter : NULL);
                jsonw_str(out, "value", f->value);
                jsonw_str(out, "help", f->help);
                jsonw_close(out, '}');
        }
}

static void command_json(struct buf *out, const struct cli_command *c)
{
        jsonw_open(out, '{');
        jsonw_str(out, "name", c->name);
        jsonw_str(out, "usage", c->usage);
        jsonw_str(out, "summary", c->summary);
        jsonw_str(out, "help", c->help);
        jsonw_open_member(out, "flags", '[');
        flags_json(out, c->flags);
        flags_json(out, common_flags);
        jsonw_close(out, ']');
        jsonw_close(out, '}');
}

int help_command(struct args *a)
{
        const char *word = a->operand_count > 0 ? a->operands[0] : NULL;
        const struct cli_command *about = word ? command_find(word) : NULL;
        const char *near = word && !about ? command_nearest(word) : NULL;
        struct buf text;

        if (near)
                return command_usage_error(a->command, "unknown command '%s' (did you mean '%s'?)",
                                           word, near);
        if (word && !about)
                return command_usage_error(a->command, "unknown command '%s'", word);
        if (a->operand_count > 1)
                return command_usage_error(a->command, "unexpected operand '%s'", a->operands[1]);
        buf_init(&text, 0);
        if (!a->json) {
                help_write(about, &text);
        } else if (about) {
                command_json(&text, about);
                buf_addch(&text, '\n');
        } else {
                jsonw_open(&text, '[');
                for (const struct cli_command *c = commands; c->name; c++)
                        command_json(&text, c);
                jsonw_close(&text, ']');
                buf_addch(&text, '\n');
        }
        fputs(text.data, stdout);
        buf_release(&text);
        return CLI_OK;
}

int help_version_command(struct args *a)
{
        if (args_end(a) < 0)
                return CLI_USAGE;
        if (a->json)
                puts("{\"name\":\"dragoman\",\"version\":\"" DRAGOMAN_VERSION "\"}");
        else
                puts("dragoman " DRAGOMAN_VERSION);
        return CLI_OK;
}
