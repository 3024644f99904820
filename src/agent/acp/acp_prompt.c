/*
 * acp_prompt: the content of a prompt: what people wrote, their pictures if the agent takes
 * pictures, and links to their other files.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/acp/acp.h"
#include "base/mem.h"

/* "file:///srv/a%20b.txt" */
static char *file_uri(const char *path)
{
        struct buf b;

        buf_init(&b, 0);
        buf_addstr(&b, "file://");
        for (; *path; path++) {
                unsigned char c = (unsigned char)*path;

                if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    strchr("/-._~", c))
                        buf_addch(&b, (char)c);
                else
                        buf_addf(&b, "%%%02X", c);
        }
        return buf_take(&b);
}

static json_t *file_block(const struct child_file *f)
{
        json_t *block;
        char *uri;

        if (f->image)
                return json_pack("{s:s, s:s, s:s}", "type", "image", "mimeType", f->mime, "data",
                                 f->image);
        uri = file_uri(f->path);
        block = json_pack("{s:s, s:s, s:s}", "type", "resource_link", "uri", uri, "name", f->name);
        if (f->mime)
                json_object_set_new(block, "mimeType", json_string(f->mime));
        if (f->size > 0)
                json_object_set_new(block, "size", json_integer(f->size));
        free(uri);
        return block;
}

json_t *acp_prompt_content(struct acp *a, const struct child_file *files, size_t count)
{
        char *text = child_prompt_text(a->child);
        json_t *content = json_pack("[{s:s, s:s}]", "type", "text", "text", text);

        for (size_t i = 0; i < count; i++)
                json_array_append_new(content, file_block(&files[i]));
        free(text);
        return content;
}
