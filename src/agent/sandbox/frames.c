#include <string.h>

#include "agent/sandbox/sandbox_private.h"

int frame_next(const struct buf *from, struct box_head *head, const char **data, size_t *consumed)
{
        if (from->len < sizeof(*head))
                return 0;
        memcpy(head, from->data, sizeof(*head));
        if (head->n > BOX_ANSWER_MAX || head->type < BOX_READY || head->type > BOX_FAILED)
                return -1;
        if ((head->type == BOX_EXIT && head->n != sizeof(struct box_exit)) ||
            (head->type == BOX_TOOK && head->n != sizeof(uint32_t)))
                return -1;
        if (from->len - sizeof(*head) < head->n)
                return 0;
        *data = from->data + sizeof(*head);
        *consumed = sizeof(*head) + head->n;
        return 1;
}

void frame_add(struct buf *to, uint32_t id, enum box_type type, const void *data, size_t n)
{
        struct box_head h = { (uint32_t)n, id, type };

        buf_add(to, &h, sizeof(h));
        buf_add(to, data, n);
}

int frame_add_run(struct buf *to, uint32_t id, unsigned flags, const char *cwd,
                  const char *const *argv, struct error *err)
{
        uint32_t given = flags;
        struct buf b;
        int rc = -1;

        buf_init(&b, 0);
        buf_add(&b, &given, sizeof(given));
        buf_add(&b, cwd, strlen(cwd) + 1);
        for (const char *const *word = argv; *word; word++)
                buf_add(&b, *word, strlen(*word) + 1);
        if (b.len > BOX_REQUEST_MAX) {
                error_set(err, ERR_LIMIT,
                          "the command is too long; write it to a file and run that");
        } else {
                frame_add(to, id, BOX_RUN, b.data, b.len);
                rc = 0;
        }
        buf_release(&b);
        return rc;
}
