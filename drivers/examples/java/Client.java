import com.google.protobuf.ExtensionRegistry;
import java.io.IOException;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg.MsgType;
import pl.edu.agh.amber.dummy.proto.DummyProto;
import thermometer.ThermometerProto;

/**
 * Queries a Dummy and a thermometer, if they are available.
 *
 * <pre>./run Client [HOST [PORT [TIMES]]]</pre>
 *
 * The default address is AMBER_MEDIATOR: HOST, HOST:PORT or [IPV6]:PORT.
 */
final class Client {
    private static final int DUMMY = 5;
    private static final int THERMOMETER = 201;
    private static final int PATIENCE_MS = 1000;

    private final Connection mediator;
    private int lastNumber;

    private Client(Connection mediator) {
        this.mediator = mediator;
    }

    /** The answer to a request; null if it could not be sent, the device is missing or UDP lost a packet. */
    private DriverMsg request(int deviceType, DriverMsg.Builder question) {
        int number = ++lastNumber;
        DriverMsg message = question.setType(MsgType.DATA).setSynNum(number).build();
        if (!mediator.send(deviceType, message)) {
            return null;
        }
        try {
            return answer(number);
        } catch (IOException silent) {
            mediator.connectAgain();
            return null;
        }
    }

    private DriverMsg answer(int number) throws IOException {
        while (true) {
            DriverMsg message = mediator.receive(PATIENCE_MS);
            if (message.getAckNum() == number) {
                // DRIVER_DIED instead of an answer: the device is not available.
                return message.getType() == MsgType.DATA ? message : null;
            }
        }
    }

    /** Queries both devices, and prints the answers. Returns their number. */
    private int query() {
        int answers = 0;
        DriverMsg.Builder status = DriverMsg.newBuilder().setExtension(DummyProto.getStatus, true);
        DriverMsg dummy = request(DUMMY, status);
        if (dummy != null && dummy.hasExtension(DummyProto.message)) {
            answers++;
            System.out.println("the dummy says: " + dummy.getExtension(DummyProto.message));
        }
        DriverMsg.Builder question =
                DriverMsg.newBuilder().setExtension(ThermometerProto.getTemperature, true);
        DriverMsg thermometer = request(THERMOMETER, question);
        if (thermometer != null && thermometer.hasExtension(ThermometerProto.temperature)) {
            answers++;
            ThermometerProto.Temperature temperature = thermometer.getExtension(ThermometerProto.temperature);
            System.out.println(temperature.hasCelsius()
                    ? String.format("the thermometer says: %.1f degrees", temperature.getCelsius())
                    : "the thermometer has no sensor");
        }
        return answers;
    }

    public static void main(String[] arguments) throws Exception {
        ExtensionRegistry registry = ExtensionRegistry.newInstance();
        DummyProto.registerAllExtensions(registry);
        ThermometerProto.registerAllExtensions(registry);
        String address = arguments.length > 0 ? arguments[0] : null;
        String port = arguments.length > 1 ? arguments[1] : null;
        int times = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 1;
        Connection mediator = new Connection(address, port, registry);
        Client client = new Client(mediator);
        int answers = client.query();
        while (--times > 0) {
            Thread.sleep(1000);
            answers += client.query();
        }
        if (answers == 0) {
            System.err.println("error: no answer; is a mediator with a dummy or a thermometer running there?");
            System.exit(1);
        }
        mediator.leave();
    }
}
