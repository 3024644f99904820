/*
 * What an agent that speaks A2A sends us: its card, or its answers as events or alone. The first
 * byte chooses. Whatever it is, the answer stays within its bounds and is valid text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/a2a/a2a_answer.h"
#include "agent/a2a/a2a_card.h"
#include "agent/a2a/a2a_wire.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/sse_reader.h"

static void check_answer(const struct a2a_answer *a)
{
        size_t text = 0, bytes = 0, files = 0;
        struct buf whole;

        for (size_t i = 0; i < a->count; i++) {
                text += a->artifacts[i].text.len;
                files += a->artifacts[i].file_count;
                for (size_t k = 0; k < a->artifacts[i].file_count; k++) {
                        bytes += a->artifacts[i].files[k].n;
                        if (!utf8_valid(a->artifacts[i].files[k].name,
                                        strlen(a->artifacts[i].files[k].name)))
                                abort();
                }
        }
        if (text != a->text_bytes || bytes != a->file_bytes || files != a->file_count ||
            text > A2A_TEXT_MAX || bytes > A2A_FILE_BYTES_MAX || files > A2A_FILES_MAX ||
            a->count > A2A_ARTIFACTS_MAX)
                abort();
        buf_init(&whole, 0);
        a2a_answer_write(a, &whole);
        if (!utf8_valid(whole.data, whole.len) || whole.len > text + 2 * a->count)
                abort();
        buf_release(&whole);
}

static void take(struct a2a_answer *a, const char *text, size_t n)
{
        json_t *root = json_read_lenient(text, n, NULL);
        struct a2a_result r;
        char *said;

        a2a_result_read(json_object_get(root, "result"), &r);
        said = a2a_message_text(r.message);
        if (said && (!*said || !utf8_valid(said, strlen(said))))
                abort();
        free(said);
        if (r.kind == A2A_ARTIFACT)
                a2a_answer_add(a, r.artifact, r.append);
        else if (r.kind == A2A_MESSAGE)
                a2a_answer_add(a, r.message, false);
        else if (r.kind == A2A_TASK && r.artifacts)
                a2a_answer_replace(a, r.artifacts);
        if (r.kind == A2A_TASK && a2a_state_is_waiting(r.state))
                a2a_answer_set_old(a);
        check_answer(a);
        json_decref(root);
}

static void on_event(void *arg, const char *event, const char *id, const char *data, size_t n)
{
        (void)event;
        (void)id;
        take(arg, data, n);
}

static void read_card(const char *text, size_t n)
{
        json_t *root = json_read_lenient(text, n, NULL);
        struct error err = { 0 };
        struct a2a_card *c = a2a_card_read(root, &err);
        struct setting_list none = { 0 };
        enum a2a_trust trust;

        if (c && (!c->url || !*c->url || !utf8_valid(c->name, strlen(c->name))))
                abort();
        /* elsewhere it is a stranger's, or not used at all */
        if (c &&
            a2a_card_trust(c->url, "https://agent.example/card.json", &none, &trust, &err) == 0 &&
            trust == A2A_OURS && strncasecmp(c->url, "https://agent.example", 21) != 0)
                abort();
        if (!c && err.kind == ERR_NONE)
                abort();
        a2a_card_unref(c);
        json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct sse_reader events;
        struct a2a_answer answer;
        char *text;

        if (size == 0)
                return 0;
        text = mem_dup(data + 1, size - 1); /* no NUL after it, so reading on is found */
        a2a_answer_init(&answer);
        switch (data[0] % 3) {
        case 0:
                read_card(text, size - 1);
                break;
        case 1:
                take(&answer, text, size - 1);
                break;
        default:
                sse_reader_init(&events, 1 << 20, on_event, &answer);
                sse_reader_feed(&events, text, size - 1);
                sse_reader_release(&events);
                break;
        }
        a2a_answer_release(&answer);
        free(text);
        return 0;
}
