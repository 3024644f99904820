/* How a shell command is taken apart: into simple commands, files, and what they run in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/scratch.h"
#include "agent/policy/shell_parts.h"
#include "base/buf.h"
#include "base/mem.h"

/* The parts, one after another: "git push; >out". NULL: it was not understood. */
static const char *parts_of(const char *text)
{
        static char out[4096];
        struct shell_parts p;
        struct error err;
        int rc = shell_parts_split(&p, text, &err);

        out[0] = '\0';
        for (size_t i = 0; rc == 0 && i < p.count; i++) {
                const struct shell_part *part = &p.parts[i];
                size_t n = strlen(out);

                if (part->text)
                        snprintf(out + n, sizeof(out) - n, "%s%s%s", n ? "; " : "", part->text,
                                 part->wraps ? " (wraps)" : "");
                else
                        snprintf(out + n, sizeof(out) - n, "%s%s%s%s", n ? "; " : "",
                                 part->writes ? ">" : "<", part->path, part->literal ? "" : "?");
        }
        shell_parts_release(&p);
        return rc == 0 ? out : NULL;
}

struct example {
        const char *text, *parts;
};

static void check(const struct example *examples, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                const char *got = parts_of(examples[i].text);

                if (!examples[i].parts) {
                        if (got)
                                fail_msg("`%s` should not be understood: %s", examples[i].text,
                                         got);
                        continue;
                }
                if (!got || strcmp(got, examples[i].parts) != 0)
                        fail_msg("`%s`: %s, not %s", examples[i].text, got ? got : "(unclear)",
                                 examples[i].parts);
        }
}

static void lists_and_pipes_are_commands(void **state)
{
        static const struct example examples[] = {
                { "", "" },
                { "ls", "ls" },
                { "  ls   -l  ", "ls -l" },
                { "a; b && c || d | e & f", "a; b; c; d; e; f" },
                { "a |& b\nc", "a; b; c" },
                { "a # b; c\nd", "a; d" },
                { "a#b", "'a#b'" },
                { "(a; b) > x", "a; b; >x" },
                { "{ a; b; } 2>&1", "a; b" },
                { "! a && time b", "a; b" },
                { "if a; then b; elif c; then d; else e; fi", "a; b; c; d; e" },
                { "while a; do b; done < in", "a; b; <in" },
                { "for x in 1 $(a) 3; do b $x; done", "a; b $x" },
                { "for x do rm y; done", "rm y" },
                { "[[ -f x && -n $(a) ]] && b", "a; b" },
                { "a \\\n b", "a b" },
                { "a\r", "a\r" },
        };

        (void)state;
        assert_string_equal(parts_of("a\r"), "'a\r'");
        check(examples, COUNT(examples) - 1);
}

static void quotes_make_words(void **state)
{
        static const struct example examples[] = {
                { "'rm' -rf", "rm -rf" },
                { "r\\m -rf", "rm -rf" },
                { "\"r\"m", "rm" },
                { "'git push'", "'git push'" }, /* one word, a strange program */
                { "echo 'a;b' \"c|d\"", "echo 'a;b' 'c|d'" },
                { "echo 'it'\\''s'", "echo 'it'\\''s'" },
                { "echo \"a $x b\"", "echo a $x b" },
                { "echo ''", "echo ''" },
                { "'if' x", "if x" }, /* quoted: a program */
                { "echo if", "echo if" },
        };

        (void)state;
        check(examples, COUNT(examples));
}

static void substitutions_are_commands(void **state)
{
        static const struct example examples[] = {
                { "echo $(rm x)", "rm x; echo $(rm x)" },
                { "echo \"$(rm x; a)\"", "rm x; a; echo $(rm x; a)" },
                { "echo `rm x`", "rm x; echo `rm x`" },
                { "echo `a \\`b\\``", "b; a `b`; echo `a \\`b\\``" },
                { "a <(b) >(c)", "b; c; a <(b) >(c)" },
                { "echo ${x:-$(rm y)}", "rm y; echo ${x:-$(rm y)}" },
                { "echo $((1 + 2))", "echo $((1 + 2))" },
                { "X=$(a) b", "a; X=$(a) b" },
                { "cat <<EOF\nhi $(a)\nEOF\nb", "cat; a; b" },
                { "cat <<'EOF'\nhi $(a)\nEOF\nb", "cat; b" },
                { "cat <<-EOF\n\thi\n\tEOF\nb", "cat; b" },
                { "cat <<A <<B\n$(a)\nA\n$(b)\nB\nc", "cat; a; b; c" },
                { "cat <<< \"$(a)\"", "a; cat" },
        };

        (void)state;
        check(examples, COUNT(examples));
}

static void redirections_are_files(void **state)
{
        static const struct example examples[] = {
                { "a > x", ">x; a" },
                { "a >>x 2>&1", ">x; a" },
                { "a 2>err <in", ">err; <in; a" },
                { "a &>x", ">x; a" },
                { "a >& x", ">x; a" },
                { "a >|x", ">x; a" },
                { "a >$x", ">$x?; a" },
                { "> x", ">x" },
                { "a 12 >x", ">x; a 12" },
                { "a > >(b)", "b; a" },
        };

        (void)state;
        check(examples, COUNT(examples));
}

static void programs_that_run_others_show_them(void **state)
{
        static const struct example examples[] = {
                { "A=1 git push", "A=1 git push" },
                { "env A=1 git push", "A=1 git push; env A=1 git push (wraps)" },
                { "env -u X git push", "git push; env -u X git push (wraps)" },
                { "timeout 5 git push", "git push; timeout 5 git push (wraps)" },
                { "timeout -k 3 5 rm x", "rm x; timeout -k 3 5 rm x (wraps)" },
                { "nohup nice -n 5 rm x &",
                  "rm x; nice -n 5 rm x (wraps); nohup nice -n 5 rm x (wraps)" },
                { "sudo -u root rm x", "rm x; sudo -u root rm x" },
                { "bash -c 'rm x; ls'", "rm x; ls; bash -c 'rm x; ls' (wraps)" },
                { "sh -ec \"rm x\"", "rm x; sh -ec 'rm x' (wraps)" },
                { "bash script.sh", "bash script.sh" },
                { "eval rm x", "rm x; eval rm x (wraps)" },
                { "eval 'rm x' '; ls'", "rm x; ls; eval 'rm x' '; ls' (wraps)" },
                { "xargs rm -f", "rm -f; xargs rm -f (wraps)" },
                { "find . -name x -exec rm {} \\;", "rm {}; find . -name x -exec rm {} ';'" },
                { "command rm x", "rm x; command rm x (wraps)" },
                { "env -iu X rm y", "rm y; env -iu X rm y (wraps)" },
                { "xargs -i rm {}", "rm {}; xargs -i rm {} (wraps)" },
                { "xargs -I {} rm {}", "rm {}; xargs -I {} rm {} (wraps)" },
                { "bash -c -x 'rm y'", "rm y; bash -c -x 'rm y' (wraps)" },
                { "bash -eo pipefail -c 'rm y'", "rm y; bash -eo pipefail -c 'rm y' (wraps)" },
                { "sh -c -- 'rm y'", "rm y; sh -c -- 'rm y' (wraps)" },
                { "eval -- rm x", "rm x; eval -- rm x (wraps)" },
                { "trap -- 'rm x' EXIT", "rm x; trap -- 'rm x' EXIT" },
                { "busybox rm x", "rm x; busybox rm x (wraps)" },
                { "trap 'rm x' EXIT", "rm x; trap 'rm x' EXIT" },
        };

        (void)state;
        check(examples, COUNT(examples));
}

static void what_only_bash_knows_is_unclear(void **state)
{
        static const char *const texts[] = {
                "$x",
                "$(which rm) y",
                "r* x",
                "{rm,x}",
                "~/bin/x",
                "$'\\x72m' x",
                "bash -c \"$x\"",
                "eval $x",
                "env -S 'rm x'",
                "xargs $x",
                "case x in x) rm y;; esac",
                "f() { rm x; }",
                "function f { rm x; }",
                "a=(1 2)",
                "((x=1))",
                "echo $((x))",
                "echo ${x@P}",
                "echo ${!x}",
                "echo ${a[x]}",
                "env --split-string='rm x'",
                "env -vS 'rm x'",
                "bash --rcfile x -c 'rm y'",
                "hash -p /bin/rm ls",
                "alias ls=rm",
                "su -c 'rm x'",
                "flock x -c 'rm y'",
                "time -p rm x",
                "x='a[$(rm y)]'",
                "echo \"${x:-'$(rm y)'}\"",
                "echo \"`echo \\\"'\\\"; rm x; echo \\\"'\\\"`\"",
                "cat <<E\nx\\\nE\necho '\n$(rm y)\n'\nE\n",
                "[[ a # ]]; echo '\n]]; rm x #'",
                "for x in a # b; do echo '\n do rm x; done'",
                "let x=1",
                "[[ x -eq 1 ]]",
                "read 'a[$(rm x)]'",
                "echo 'a",
                "echo \"a",
                "echo `a",
                "echo $(a",
                "(a",
                "a)",
                "a ;; b",
                "cat <<EOF\nx",
                "cat <<EOF",
                "$(cat <<EOF)\nEOF",
                "a >",
                "echo \\",
                "coproc a",
                "@(a|b)",
                "cat<(a)",
                "cat\\\n>(a)",
                "cat <(a)#; rm x",
                "cat <(a)\\\n#; rm x",
                "a > >(b)#; rm x",
                "echo $\\\n(rm x)",
                "echo \"$\\\n(rm x)\"",
                "r$\\\na x",
                "echo $\\\n{x@P}",
                "echo ${x@\\\nP}",
                "echo ${\\\n!x}",
                "echo $(\\\n(x))",
                "(\\\n(x))",
                "cat <<\\\n-E\nE\nrm x\n-E\n",
        };

        (void)state;
        for (size_t i = 0; i < COUNT(texts); i++) {
                if (parts_of(texts[i]))
                        fail_msg("`%s`: %s", texts[i], parts_of(texts[i]));
        }
}

static void depth_and_length_have_limits(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 0);
        for (int i = 0; i < 5000; i++)
                buf_addstr(&b, "$(");
        assert_null(parts_of(b.data));
        buf_clear(&b);
        for (int i = 0; i < 5000; i++)
                buf_addstr(&b, "\"${a:-");
        assert_null(parts_of(b.data));
        buf_clear(&b);
        for (int i = 0; i < 5000; i++)
                buf_addstr(&b, "env ");
        assert_null(parts_of(b.data));
        buf_clear(&b);
        for (int i = 0; i < 1000; i++)
                buf_addstr(&b, "a;");
        assert_null(parts_of(b.data));
        buf_clear(&b);
        for (int i = 0; i < 70000; i++)
                buf_addch(&b, 'a');
        assert_null(parts_of(b.data));
        buf_release(&b);
}

/* Is the command a part of its own, not only text of another one? -1: not understood. */
static int finds(const char *text, const char *command)
{
        struct shell_parts p;
        struct error err;
        int rc = shell_parts_split(&p, text, &err);

        for (size_t i = 0; rc == 0 && i < p.count; i++) {
                if (p.parts[i].text && strcmp(p.parts[i].text, command) == 0)
                        rc = 1;
        }
        shell_parts_release(&p);
        return rc;
}

static unsigned random_below(unsigned *seed, size_t n)
{
        *seed = *seed * 1103515245u + 12345u;
        return (unsigned)((*seed >> 16) % n);
}

/* However commands are joined and nested, each one is found, or the whole is not understood. */
static void whatever_is_joined_is_found_again(void **state)
{
        static const char *const joins[] = { "; ", " && ", " || ", " | ", " & ", "\n", " |& " };
        static const struct {
                const char *before, *after;
        } frames[] = {
                { "(", ")" },
                { "{ ", "; }" },
                { "echo $(", ")" },
                { "a <(", ")" },
                { "if ", "; then b; fi" },
                { "! ", "" },
                { "cat <<X\n$(", ")\nX\n" },
                { "echo \"`", "`\"" },
                { "V=$(", ")" },
                { "b > >(", ")" },
                { "while ", "; do b; done" },
                { "for x in a $(", "); do b; done" },
                { "echo ${x:-$(", ")}" },
                { "[[ -n $(", ") ]]" },
        };
        unsigned seed = 7, understood = 0;

        (void)state;
        for (unsigned round = 0; round < 3000; round++) {
                unsigned victims = 1 + round % 3;
                struct buf text, whole;

                buf_init(&text, 0);
                buf_init(&whole, 0);
                for (unsigned i = 0; i < victims; i++)
                        buf_addf(&text, "%svictim%u x",
                                 i ? joins[random_below(&seed, COUNT(joins))] : "", i);
                for (unsigned depth = 0; depth < round % 4; depth++) {
                        unsigned f = random_below(&seed, COUNT(frames));

                        buf_clear(&whole);
                        buf_addf(&whole, "%s%s%s", frames[f].before, text.data, frames[f].after);
                        buf_clear(&text);
                        buf_addstr(&text, whole.data);
                }
                for (unsigned i = 0; i < victims; i++) {
                        char victim[24];
                        int rc;

                        snprintf(victim, sizeof(victim), "victim%u x", i);
                        rc = finds(text.data, victim);
                        if (rc == 0)
                                fail_msg("`%s` hides %s", text.data, victim);
                        understood += rc == 1;
                }
                buf_release(&text);
                buf_release(&whole);
        }
        assert_true(understood > 4000); /* of 6000 */
}

/* ---- against bash itself ---- */

#define SCRIPTS 1500

static const char *const tokens[] = {
        "v1",
        "v2 x",
        "v3",
        "echo ",
        " ",
        "'",
        "\"",
        "`",
        "$(",
        ")",
        "${x:-",
        "}",
        "\\",
        "\n",
        ";",
        " | ",
        " && ",
        " || ",
        "cat <<E\n",
        "\nE\n",
        "cat <<'E'\n",
        "#",
        " # ",
        "[[ a ",
        " ]]",
        "{ ",
        "; }",
        "if v1",
        "; then ",
        "; fi",
        "(",
        "\\\"",
        "$'",
        "\\\n",
        "eval ",
        "env ",
        "E",
        "for x in a ",
        "; do ",
        "; done",
        "<(",
        "sh -c ",
        "\\'",
        "$x",
        "x=1 ",
        "! ",
        "time ",
        "\t",
        "timeout 5 ",
        "xargs ",
        "> out ",
        "2>&1 ",
        "<<<",
        "$((1))",
        "v2",
        "\"$(v3)\"",
        "'v1'",
        "\"`v2`\"",
        "case a in a) ",
        ";; esac",
        "f() { ",
        "$\"",
        "bash -c '",
        "<<-E\n",
        "$",
        "(v1)",
        "<(v3)",
        "<<",
        "-E\n",
};

/* Random tokens, more often with balanced ends. */
static char *random_script(unsigned *seed)
{
        unsigned n = 2 + random_below(seed, 12);
        struct buf b;

        buf_init(&b, 0);
        for (unsigned i = 0; i < n; i++)
                buf_addstr(&b, tokens[random_below(seed, COUNT(tokens))]);
        return buf_take(&b);
}

/* Runs all scripts; each program v1 to v3 notes that it ran. */
static void run_in_bash(char *dir)
{
        static const char driver[] =
                "cd \"$1\" && mkdir bin run && for t in cat env bash sh timeout xargs; do"
                " ln -s \"$(command -v $t)\" bin/$t; done;"
                " for v in v1 v2 v3; do printf '#!/bin/sh\\necho %s >>\"$LOG\"\\n' $v >bin/$v;"
                " chmod 755 bin/$v; done; B=$(command -v bash); D=$PWD; cd run;"
                " for s in ../s*; do LOG=\"$D/log.${s#../s}\" PATH=\"$D/bin\" $B \"$s\" </dev/null"
                " >/dev/null 2>&1; done; :";
        char *argv[] = { (char *)"bash", (char *)"-c", (char *)driver, (char *)"bash", dir, NULL };
        pid_t child;
        int status;

        assert_int_equal(posix_spawnp(&child, "bash", NULL, NULL, argv, environ), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
}

/* Is every program that ran (one per line of the log) one of the parts? */
static bool log_is_covered(const char *dir, unsigned i, const struct shell_parts *p)
{
        char name[32], line[32];
        bool covered = true;
        char *path;
        FILE *f;

        snprintf(name, sizeof(name), "log.%u", i);
        path = scratch_path(dir, name);
        f = fopen(path, "r");
        free(path);
        while (f && covered && fgets(line, sizeof(line), f)) {
                line[strcspn(line, "\n")] = '\0';
                covered = false;
                for (size_t k = 0; k < p->count; k++)
                        covered = covered ||
                                  (p->parts[k].program && strcmp(p->parts[k].program, line) == 0);
        }
        if (f)
                fclose(f);
        return covered;
}

/*
 * What this parser understands, it understands as bash does: no program runs that it did not see.
 * SEED=n looks elsewhere.
 */
static void what_bash_runs_is_found(void **state)
{
        char *dir = scratch_new(), *scripts[SCRIPTS], name[32];
        const char *elsewhere = getenv("SEED");
        unsigned seed = elsewhere ? (unsigned)strtoul(elsewhere, NULL, 10) : 11, understood = 0;

        (void)state;
        for (unsigned i = 0; i < SCRIPTS; i++) {
                scripts[i] = random_script(&seed);
                snprintf(name, sizeof(name), "s%u", i);
                scratch_put(dir, name, scripts[i]);
        }
        run_in_bash(dir);
        for (unsigned i = 0; i < SCRIPTS; i++) {
                struct shell_parts p;
                struct error err;

                if (shell_parts_split(&p, scripts[i], &err) == 0) {
                        understood++;
                        if (!log_is_covered(dir, i, &p))
                                fail_msg("script %u hides what it runs: %s", i, scripts[i]);
                }
                shell_parts_release(&p);
                free(scripts[i]);
        }
        print_message("%u of %u scripts were understood\n", understood, SCRIPTS);
        assert_true(understood > SCRIPTS / 20);
        scratch_free(dir);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_and_pipes_are_commands),
                cmocka_unit_test(quotes_make_words),
                cmocka_unit_test(substitutions_are_commands),
                cmocka_unit_test(redirections_are_files),
                cmocka_unit_test(programs_that_run_others_show_them),
                cmocka_unit_test(what_only_bash_knows_is_unclear),
                cmocka_unit_test(depth_and_length_have_limits),
                cmocka_unit_test(whatever_is_joined_is_found_again),
                cmocka_unit_test(what_bash_runs_is_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
