/* Any bytes as a file of workspace/events: read or refused with a reason. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "schedule/event_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        struct error err = { 0 };
        struct buf mistakes;
        struct event_file f;
        char *options;
        json_t *read;

        buf_init(&mistakes, 0);
        if (event_file_parse("x.json", (const char *)data, n, &f, &mistakes, &err) < 0) {
                assert(err.text[0] && mistakes.len > 0);
        } else {
                assert(f.text[0] && strlen(f.text) <= EVENT_FILE_TEXT_MAX && f.check_seconds >= 1);
                assert((f.kind == SCHEDULE_ONE_SHOT) == (f.at_ms > 0));
                assert((f.kind == SCHEDULE_PERIODIC) == (f.schedule != NULL));
                options = event_file_options(&f, n % 2, f.agent);
                read = json_read(options, strlen(options), &err);
                assert(read);
                json_decref(read);
                free(options);
                event_file_release(&f);
        }
        buf_release(&mistakes);
        return 0;
}
