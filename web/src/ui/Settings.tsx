export default function Settings(_: any) {
  return <div className="screen empty">Settings</div>;
}
