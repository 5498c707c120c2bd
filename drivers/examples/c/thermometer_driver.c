/* A driver for a user-defined device: the warmest sensor of this computer.
 *
 *     amber mediator --driver '201:0=./thermometer_driver'
 *
 * Its messages are in ../thermometer.proto.
 */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "amber.h"

enum { GET_TEMPERATURE = 110, TEMPERATURE = 111 }; /* of DriverMsg */
enum { CELSIUS = 1, SENSOR = 2 };                  /* of Temperature */

/* Reads the first line of a file. */
static bool read_line(const char *folder, const char *name, char *line, int size) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    bool read = fgets(line, size, file) != NULL;
    fclose(file);
    line[read ? strcspn(line, "\n") : 0] = '\0';
    return read;
}

static bool put_temperature(amber_buffer *message) {
    static amber_buffer inside;
    glob_t zones;
    double warmest = -1e9;
    char sensor[64] = "";
    inside.length = 0;
    if (glob("/sys/class/thermal/thermal_zone*", 0, NULL, &zones) == 0) {
        for (size_t i = 0; i < zones.gl_pathc; i++) {
            char line[64];
            long thousandths;
            if (read_line(zones.gl_pathv[i], "temp", line, sizeof line) &&
                sscanf(line, "%ld", &thousandths) == 1 && (double)thousandths / 1000.0 > warmest) {
                warmest = (double)thousandths / 1000.0;
                read_line(zones.gl_pathv[i], "type", sensor, sizeof sensor);
            }
        }
        globfree(&zones);
    }
    if (warmest > -1e9) {
        amber_put_double(&inside, CELSIUS, warmest);
        amber_put_text(&inside, SENSOR, sensor);
    }
    /* Present even if no sensor can be read. */
    amber_put_bytes(message, TEMPERATURE, inside.data, inside.length);
    return true;
}

static bool request(amber_bytes message, int32_t client, amber_buffer *answer) {
    amber_field field;
    if (amber_find(message, GET_TEMPERATURE, &field)) return put_temperature(answer);
    amber_log("not a request for the thermometer, from client %d", client);
    return false;
}

int main(void) {
    amber_driver thermometer = {.period_ms = 1000, .request = request, .publish = put_temperature};
    return amber_serve(&thermometer);
}
