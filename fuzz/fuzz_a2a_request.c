/*
 * Requests of software that speaks A2A to us. The input is the version header, a line end, and the
 * body. What is refused has an error that says why, as valid JSON.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/compat/a2a.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

static void check_error(const struct a2a_rpc *rpc, const struct a2a_mistake *m)
{
        struct buf b;
        json_t *root;

        if (m->code == 0 || !m->text[0])
                abort();
        buf_init(&b, 0);
        a2a_write_error(&b, rpc->id, m);
        root = json_read(b.data, b.len, NULL);
        if (json_int(json_object_get(root, "error"), "code", 0) != m->code ||
            !json_object_get(root, "id"))
                abort();
        json_decref(root);
        buf_release(&b);
}

static void check_id(const char *id)
{
        if (id && (!*id || strlen(id) > A2A_ID_MAX || strchr(id, '\n')))
                abort();
}

static void read_message(const struct a2a_rpc *rpc)
{
        struct a2a_mistake m = { 0 };
        struct a2a_ask ask;

        if (a2a_ask_read(rpc, &ask, &m) < 0) {
                check_error(rpc, &m);
        } else {
                check_id(ask.message);
                check_id(ask.context);
                check_id(ask.task);
                if (!ask.message || ask.file_count > A2A_ASK_FILES ||
                    (ask.text.len == 0 && ask.file_count == 0) ||
                    !utf8_valid(ask.text.data, ask.text.len))
                        abort();
                for (size_t i = 0; i < ask.file_count; i++)
                        if (!ask.files[i].url == !ask.bytes[i])
                                abort();
        }
        a2a_ask_release(&ask);
}

static void read_list(const struct a2a_rpc *rpc)
{
        struct a2a_mistake m = { 0 };
        struct a2a_list_ask ask;

        if (a2a_list_ask_read(rpc, &ask, &m) < 0)
                check_error(rpc, &m);
        else if (ask.size < 1 || ask.size > A2A_PAGE_MAX || ask.from_ms < 0 || ask.from_event < 0)
                abort();
}

static void read_task_id(const struct a2a_rpc *rpc)
{
        struct a2a_mistake m = { 0 };
        int64_t history;

        if (a2a_task_id_read(rpc, &m) < 0)
                check_error(rpc, &m);
        if (a2a_history_read(rpc->params, &history, &m) < 0)
                check_error(rpc, &m);
        else if (history < A2A_ALL_HISTORY)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const uint8_t *end = memchr(data, '\n', size);
        char *header = mem_strndup((const char *)data, end ? (size_t)(end - data) : 0);
        size_t from = end ? (size_t)(end - data) + 1 : 0;
        json_t *root = json_read_lenient((const char *)data + from, size - from, NULL);
        struct a2a_mistake m = { 0 };
        struct a2a_rpc rpc;

        if (a2a_rpc_read(root, header, &rpc, &m) < 0) {
                check_error(&rpc, &m);
        } else if (rpc.params || rpc.method != A2A_EXTENDED_CARD) {
                read_message(&rpc);
                read_list(&rpc);
                read_task_id(&rpc);
        }
        free(rpc.id);
        json_decref(root);
        free(header);
        return 0;
}
