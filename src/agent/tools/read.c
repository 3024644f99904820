/*
 * read: a text file, in parts if it is long; an image or a PDF where the model takes them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/tools/tool_file.h"
#include "agent/tools/tools_private.h"
#include "agent/tools/truncation.h"
#include "base/crypto.h"
#include "base/json.h"
#include "base/mem.h"

#define TEXT_MAX (64 << 20) /* all of it is read, to count the lines */
#define PIECE    (64 << 10)

struct read_tool_job {
        struct file_job base;
        int64_t offset, limit; /* 0: not given */
        size_t bytes_max;
        bool images, documents;
};

/* By content: names lie. NULL: none of those that models take. */
static const char *media_type(const char *bytes, size_t n)
{
        static const struct {
                const char *type, *magic;
                size_t n, at;
        } kinds[] = {
                { "image/jpeg", "\xff\xd8\xff", 3, 0 }, { "image/png", "\x89PNG\r\n\x1a\n", 8, 0 },
                { "image/gif", "GIF87a", 6, 0 },        { "image/gif", "GIF89a", 6, 0 },
                { "image/webp", "WEBP", 4, 8 },         { "application/pdf", "%PDF-", 5, 0 },
        };

        for (size_t i = 0; i < COUNT(kinds); i++)
                if (n >= kinds[i].at + kinds[i].n &&
                    memcmp(bytes + kinds[i].at, kinds[i].magic, kinds[i].n) == 0)
                        return kinds[i].type;
        return NULL;
}

/* An image or document as a block. */
static void read_media(struct read_tool_job *r, const char *type, int64_t size)
{
        struct file_job *j = &r->base;
        bool is_image = strncmp(type, "image/", 6) == 0;
        int64_t max = is_image ? TOOL_IMAGE_MAX : TOOL_DOCUMENT_MAX;
        const char *base = strrchr(j->file.name, '/');
        struct buf bytes;
        char *data, *note;

        if (!(is_image ? r->images : r->documents)) {
                error_set(&j->err, ERR_INVALID,
                          "'%.200s' is %s (%s), which this model cannot see; %s", j->file.name,
                          is_image ? "an image" : "a PDF", type,
                          is_image ? "look at it with a command such as file or identify"
                                   : "take its text out with a command such as pdftotext");
                return;
        }
        if (size > max) {
                error_set(&j->err, ERR_LIMIT,
                          "'%.200s' (%s) has %lld bytes; at most %lld can be shown. Make a smaller "
                          "copy and read that",
                          j->file.name, type, (long long)size, (long long)max);
                return;
        }
        buf_init(&bytes, 0);
        if (tool_file_read(&j->file, max, &bytes, &j->err) == 0) {
                data = crypto_base64(bytes.data, bytes.len);
                note = mem_printf("%s %s, %zu bytes", is_image ? "Image" : "Document", type,
                                  bytes.len);
                j->result.content =
                        json_pack("[o, {s:s, s:s, s:s, s:s}]", tool_text_block(note, strlen(note)),
                                  "type", is_image ? "image" : "document", "mimeType", type, "data",
                                  data, "name", base ? base + 1 : j->file.name);
                free(note);
                free(data);
        }
        buf_release(&bytes);
}

static void add_notice(struct buf *out, const struct read_tool_job *r, const struct truncation *t)
{
        int64_t last = t->first_line + t->output_lines - 1;

        if (t->by)
                buf_addf(out, "\n[Showing lines %lld-%lld of %lld%s. Use offset=%lld to continue.]",
                         (long long)t->first_line, (long long)last, (long long)t->total_lines,
                         strcmp(t->by, "bytes") == 0 ? " (byte limit)" : "", (long long)last + 1);
        else if (r->limit > 0 && last < t->total_lines)
                buf_addf(out, "\n[%lld more lines in the file. Use offset=%lld to continue.]",
                         (long long)(t->total_lines - last), (long long)last + 1);
        if (t->cut_lines > 0)
                buf_addf(out,
                         "\n[%lld lines were cut at 2 KB. Use a command such as cut -c to see "
                         "the rest of them.]",
                         (long long)t->cut_lines);
}

static void finish_text(struct read_tool_job *r, struct text_head *h)
{
        struct file_job *j = &r->base;
        const struct truncation *t = &h->result;

        if (t->total_lines == 0)
                buf_addstr(&h->text, "(the file is empty)");
        else if (r->offset > t->total_lines) {
                error_set(&j->err, ERR_INVALID,
                          "offset %lld is beyond the end of '%.200s', which has %lld lines",
                          (long long)r->offset, j->file.name, (long long)t->total_lines);
                return;
        }
        add_notice(&h->text, r, t);
        j->result.content = json_pack("[o]", tool_text_block(h->text.data, h->text.len));
        if (t->by || t->cut_lines > 0)
                j->result.details = json_pack("{s:o}", "truncation", truncation_json(t));
}

/* Reads on, after the first piece. */
static void read_text(struct read_tool_job *r, int fd, char *piece, ssize_t n)
{
        struct file_job *j = &r->base;
        struct text_cleaner cleaner = { 0 };
        struct text_head head;
        struct buf clean;
        bool binary = memchr(piece, '\0', (size_t)n) != NULL;

        text_head_init(&head, r->offset > 0 ? r->offset : 1, r->limit, r->bytes_max);
        buf_init(&clean, 0);
        while (n > 0 && !binary) {
                buf_clear(&clean);
                text_cleaner_add(&cleaner, piece, (size_t)n, &clean);
                text_head_add(&head, clean.data, clean.len);
                if (cleaner.bytes > TEXT_MAX) /* it grew */
                        break;
                do
                        n = read(fd, piece, PIECE);
                while (n < 0 && errno == EINTR);
        }
        buf_clear(&clean);
        text_cleaner_end(&cleaner, &clean);
        text_head_add(&head, clean.data, clean.len);
        text_head_end(&head);
        if (n < 0)
                error_set(&j->err, ERR_IO, "cannot read '%.200s': %s", j->file.name,
                          strerror(errno));
        else if (binary || text_cleaner_is_binary(&cleaner))
                error_set(&j->err, ERR_INVALID,
                          "'%.200s' is a binary file; use a command such as file, strings or xxd",
                          j->file.name);
        else
                finish_text(r, &head);
        buf_release(&clean);
        text_head_release(&head);
}

static void read_on_pool(struct file_job *j)
{
        struct read_tool_job *r = (struct read_tool_job *)j;
        int64_t size;
        int fd = tool_file_open(&j->file, TEXT_MAX, &size, &j->err);
        char *piece = mem_alloc(PIECE);
        const char *type;
        ssize_t n;

        if (fd < 0) {
                free(piece);
                return;
        }
        /* what all channels share is the operator's; the rest may be anybody's words */
        j->result.untrusted = !j->file.is_shared;
        n = read(fd, piece, PIECE);
        type = n > 0 ? media_type(piece, (size_t)n) : NULL;
        if (n < 0)
                error_set(&j->err, ERR_IO, "cannot read '%.200s': %s", j->file.name,
                          strerror(errno));
        else if (type)
                read_media(r, type, size);
        else
                read_text(r, fd, piece, n);
        close(fd);
        free(piece);
}

static void read_start(struct tool_call *c)
{
        struct read_tool_job *r = mem_zalloc(sizeof(*r));
        const char *path = json_str(c->arguments, "path", "");

        r->base.work = read_on_pool;
        r->offset = json_int(c->arguments, "offset", 0);
        r->limit = json_int(c->arguments, "limit", 0);
        r->bytes_max = c->bytes_max;
        r->images = c->scope->images;
        r->documents = c->scope->documents;
        file_job_start(c, &r->base, path, false);
}

const struct tool read_tool = {
        .name = "read",
        .description =
                "Read a file. Text comes with at most 2000 lines or 50 KB; use offset and limit "
                "for the other parts of a large file. Images (jpg, png, gif, webp) and PDFs are "
                "shown where the model can see them.",
        .parameters =
                "{\"properties\":{"
                "\"path\":{\"type\":\"string\",\"minLength\":1,\"description\":\"Path of the file, "
                "absolute below /workspace or relative to the channel's folder\"},"
                "\"offset\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"Line to start "
                "with, counted from 1\"},"
                "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"How many lines at "
                "most\"}},"
                "\"required\":[\"path\"],\"additionalProperties\":false}",
        .flags = TOOL_READ_ONLY,
        .start = read_start,
        .cancel = file_job_cancel,
};
