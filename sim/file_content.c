#include "sim/file_content.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/mem.h"

/* The smallest PNG. */
static const unsigned char tiny_png[] = {
        0x89, 'P',  'N',  'G',  '\r', '\n', 0x1a, '\n', 0,    0,    0,    13,   'I',  'H',
        'D',  'R',  0,    0,    0,    1,    0,    0,    0,    1,    8,    0,    0,    0,
        0,    0x3a, 0x7e, 0x9b, 0x55, 0,    0,    0,    10,   'I',  'D',  'A',  'T',  0x78,
        0x9c, 0x63, 0x60, 0,    0,    0,    2,    0,    1,    0x48, 0xaf, 0xa4, 0x71, 0,
        0,    0,    0,    'I',  'E',  'N',  'D',  0xae, 0x42, 0x60, 0x82,
};

static int decode_base64(const char *text, struct buf *out)
{
        static const char digits[] =
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        unsigned bits = 0, have = 0;

        for (; *text && *text != '='; text++) {
                const char *at = strchr(digits, *text);

                if (!at)
                        return -1;
                bits = bits << 6 | (unsigned)(at - digits);
                have += 6;
                if (have >= 8) {
                        have -= 8;
                        buf_addch(out, (char)(unsigned char)(bits >> have));
                }
        }
        return 0;
}

int file_content_read(const json_t *request, struct buf *out, struct error *err)
{
        const char *text = json_str(request, "content", NULL),
                   *encoded = json_str(request, "base64", NULL);
        int64_t size = json_int(request, "size", -1);

        if (text)
                return buf_addstr(out, text);
        if (encoded && decode_base64(encoded, out) != 0)
                return error_set(err, ERR_INVALID, "'base64' is malformed");
        if (encoded)
                return 0;
        if (size > (int64_t)FILE_CONTENT_MAX)
                return error_set(err, ERR_LIMIT, "'size' must be at most %zu", FILE_CONTENT_MAX);
        if (size < 0)
                return buf_add(out, tiny_png, sizeof(tiny_png));
        for (; size > 0; size--)
                buf_addch(out, 'x');
        return 0;
}

char *file_content_name(const char *name)
{
        char *out = mem_strdup(name);

        for (char *p = out; *p; p++) {
                if (strchr(" /\\?#%&\"'<>", *p))
                        *p = '_';
        }
        return out;
}

const char *file_content_type(const char *name, const char **suffix)
{
        static const char *const types[][2] = {
                { "png", "image/png" },       { "jpg", "image/jpeg" },
                { "jpeg", "image/jpeg" },     { "gif", "image/gif" },
                { "webp", "image/webp" },     { "txt", "text/plain" },
                { "md", "text/markdown" },    { "json", "application/json" },
                { "pdf", "application/pdf" }, { "ogg", "audio/ogg" },
                { "mp3", "audio/mpeg" },      { "mp4", "video/mp4" },
                { "csv", "text/csv" },        { "html", "text/html" },
        };
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && i < COUNT(types); i++) {
                if (strcasecmp(types[i][0], dot + 1) == 0) {
                        *suffix = types[i][0];
                        return types[i][1];
                }
        }
        return NULL;
}
