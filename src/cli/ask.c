#include "cli/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/print.h"

bool ask_possible(const struct args *a)
{
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !a->json;
}

/* "" for an empty line or the end of the input. */
static void ask(const char *question, char *answer, int size)
{
        printf("%s ", question);
        fflush(stdout);
        if (!fgets(answer, size, stdin)) {
                answer[0] = '\0';
                putchar('\n');
        }
        answer[strcspn(answer, "\r\n")] = '\0';
}

bool ask_yes(const char *question)
{
        char answer[16];

        ask(question, answer, sizeof(answer));
        return *answer == 'y' || *answer == 'Y';
}

const char *ask_which(const char *what, const json_t *candidates, struct error *err)
{
        size_t count = json_array_size(candidates), i;
        const json_t *each;
        char answer[16], *end;
        unsigned long chosen;

        print_quoted(stdout, "", what);
        puts(" may be one of these:");
        json_array_foreach(candidates, i, each) {
                printf("%3zu  ", i + 1);
                print_line(stdout, json_str(each, "id", "?"), 100);
                print_field(stdout, "  ", json_str(each, "label", NULL), 100);
                putchar('\n');
        }
        ask("Which one is meant? (its number; empty: none)", answer, sizeof(answer));
        chosen = strtoul(answer, &end, 10);
        if (*answer == '\0')
                error_set(err, ERR_CANCELLED, "none was chosen; nothing was changed");
        else if (*end != '\0' || chosen < 1 || chosen > count)
                error_set(err, ERR_INVALID,
                          "'%s' is not a number from 1 to %zu; nothing was changed", answer, count);
        else
                return json_str(json_array_get(candidates, chosen - 1), "id", NULL);
        return NULL;
}
