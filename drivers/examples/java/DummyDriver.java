import com.google.protobuf.ExtensionRegistry;
import pl.edu.agh.amber.common.proto.CommonProto.DriverMsg;
import pl.edu.agh.amber.dummy.proto.DummyProto;

/**
 * A complete driver: the Dummy device, a flag and a text.
 *
 * <pre>amber mediator --driver 'dummy:0=./run DummyDriver'</pre>
 */
final class DummyDriver extends Driver {
    // The device itself. All clients share it.
    private boolean enable;
    private String message = "Message";
    private int responses;

    private DummyDriver() {
        super(100);
    }

    @Override
    void register(ExtensionRegistry registry) {
        DummyProto.registerAllExtensions(registry);
    }

    @Override
    DriverMsg.Builder request(DriverMsg ask, int client) {
        if (ask.hasExtension(DummyProto.enable)) {
            enable = ask.getExtension(DummyProto.enable);
        } else if (ask.hasExtension(DummyProto.message)) {
            message = ask.getExtension(DummyProto.message);
        } else if (ask.hasExtension(DummyProto.getStatus)) {
            return DriverMsg.newBuilder()
                    .setExtension(DummyProto.enable, enable)
                    .setExtension(DummyProto.message, message);
        } else {
            log("not a request for the dummy, from client " + client);
        }
        return null;
    }

    @Override
    DriverMsg.Builder publish() {
        responses++;
        return DriverMsg.newBuilder().setExtension(DummyProto.message, "Response " + responses);
    }

    public static void main(String[] arguments) throws Exception {
        new DummyDriver().serve();
    }
}
