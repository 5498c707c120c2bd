import com.google.protobuf.ExtensionRegistry;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import thermometer.ThermometerProto;
import thermometer.ThermometerProto.Temperature;

/**
 * A driver for a user-defined device: the warmest sensor of this computer. Its messages are in
 * ../thermometer.proto.
 *
 * <pre>amber mediator --driver '201:0=./run ThermometerDriver'</pre>
 */
final class ThermometerDriver extends Driver {
    private ThermometerDriver() {
        super(1000);
    }

    @Override
    void register(ExtensionRegistry registry) {
        ThermometerProto.registerAllExtensions(registry);
    }

    @Override
    DriverMsg.Builder request(DriverMsg ask, int client) {
        if (ask.hasExtension(ThermometerProto.getTemperature)) {
            return publish();
        }
        log("not a request for the thermometer, from client " + client);
        return null;
    }

    @Override
    DriverMsg.Builder publish() {
        return DriverMsg.newBuilder().setExtension(ThermometerProto.temperature, warmest());
    }

    /** Empty if no sensor can be read. */
    private static Temperature warmest() {
        Temperature warmest = Temperature.getDefaultInstance();
        Path zones = Path.of("/sys/class/thermal");
        try (DirectoryStream<Path> found = Files.newDirectoryStream(zones, "thermal_zone*")) {
            for (Path zone : found) {
                try {
                    // The kernel reports thousandths.
                    double celsius = Double.parseDouble(Files.readString(zone.resolve("temp")).trim()) / 1000.0;
                    if (!warmest.hasCelsius() || celsius > warmest.getCelsius()) {
                        String sensor = Files.readString(zone.resolve("type")).trim();
                        warmest = Temperature.newBuilder().setCelsius(celsius).setSensor(sensor).build();
                    }
                } catch (IOException | NumberFormatException switchedOff) {
                    // Try the next sensor.
                }
            }
        } catch (IOException noSuchFolder) {
            // There are no sensors.
        }
        return warmest;
    }

    public static void main(String[] arguments) throws Exception {
        new ThermometerDriver().serve();
    }
}
