#include "sim/telegram/tg_media.h"

#include <string.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

static const struct media_kind kinds[] = {
        /* name, folder, mime; caption, timed, sized, named, image */
        { "photo", "photos", "image/jpeg", true, false, true, false, true },
        { "audio", "music", "audio/mpeg", true, true, false, true, false },
        { "document", "documents", "application/octet-stream", true, false, false, true, false },
        { "video", "videos", "video/mp4", true, true, true, true, false },
        { "animation", "animations", "video/mp4", true, true, true, true, false },
        { "voice", "voice", "audio/ogg", true, true, false, false, false },
        { "video_note", "video_notes", "video/mp4", false, true, false, false, false },
        { "sticker", "stickers", "image/webp", false, false, true, false, false },
};

static const struct {
        const char *method, *kind;
} methods[] = {
        { "sendPhoto", "photo" },          { "sendAudio", "audio" },
        { "sendDocument", "document" },    { "sendVideo", "video" },
        { "sendAnimation", "animation" },  { "sendVoice", "voice" },
        { "sendVideoNote", "video_note" }, { "sendSticker", "sticker" },
};

const struct media_kind *tg_media_kind(const char *name)
{
        for (size_t i = 0; name && i < COUNT(kinds); i++) {
                if (strcmp(kinds[i].name, name) == 0)
                        return &kinds[i];
        }
        return NULL;
}

const struct media_kind *tg_media_kind_of_method(const char *method)
{
        for (size_t i = 0; i < COUNT(methods); i++) {
                if (strcmp(methods[i].method, method) == 0)
                        return tg_media_kind(methods[i].kind);
        }
        return NULL;
}

static void write_object(struct buf *b, const struct media_kind *k, const struct file *f,
                         const json_t *details)
{
        jsonw_open(b, '{');
        jsonw_str(b, "file_id", f->id);
        jsonw_str(b, "file_unique_id", f->unique_id);
        jsonw_int(b, "file_size", (int64_t)f->size);
        if (k->sized) {
                jsonw_int(b, "width", json_int(details, "width", f->width ? f->width : 320));
                jsonw_int(b, "height", json_int(details, "height", f->height ? f->height : 240));
        }
        if (strcmp(k->name, "video_note") == 0)
                jsonw_int(b, "length", json_int(details, "length", 240));
        if (k->timed)
                jsonw_int(b, "duration", json_int(details, "duration", 1));
        if (k->named)
                jsonw_opt(b, "file_name", f->name);
        if (k->named || strcmp(k->name, "voice") == 0)
                jsonw_str(b, "mime_type", f->mime ? f->mime : k->mime);
        if (strcmp(k->name, "audio") == 0) {
                jsonw_opt(b, "title", json_str(details, "title", NULL));
                jsonw_opt(b, "performer", json_str(details, "performer", NULL));
        }
        if (strcmp(k->name, "sticker") == 0) {
                jsonw_str(b, "type", "regular");
                jsonw_bool(b, "is_animated", false);
                jsonw_bool(b, "is_video", false);
                jsonw_opt(b, "emoji", json_str(details, "emoji", NULL));
                jsonw_opt(b, "set_name", json_str(details, "set_name", NULL));
        }
        jsonw_close(b, '}');
}

char *tg_media_member(const struct media_kind *k, const struct file *f, const json_t *details)
{
        struct buf b;

        buf_init(&b, 0);
        if (strcmp(k->name, "photo") == 0) {
                jsonw_open_member(&b, k->name, '[');
                write_object(&b, k, f, details);
                jsonw_close(&b, ']');
                return buf_take(&b);
        }
        jsonw_quote(&b, k->name, strlen(k->name));
        buf_addch(&b, ':');
        write_object(&b, k, f, details);
        /* for old clients an animation is also a document */
        if (strcmp(k->name, "animation") == 0) {
                buf_addstr(&b, ",\"document\":");
                write_object(&b, tg_media_kind("document"), f, details);
        }
        return buf_take(&b);
}
